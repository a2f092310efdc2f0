//! Stores that refuse, as servers of tests do not: a server of a few lines gives their answers.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod support;

use std::fs;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use evener_shards::{Ask, Wanted};
use support::faults::Head;
use support::{Person, ended_with, folder, planning, program, report, shard};

/// Answers all requests of a client with 403, as Amazon and Google do of a name without an object to who may not list the bucket.
fn refuse(mut client: &TcpStream) {
    let mut requests = BufReader::new(client);
    while let Ok(Some(head)) = Head::read(&mut requests) {
        std::io::copy(&mut (&mut requests).take(head.length()), &mut std::io::sink()).unwrap();
        if client.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

#[test]
fn who_may_not_list_is_told_which_right_is_missing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            thread::spawn(move || refuse(&client));
        }
    });
    let place = folder();
    fs::create_dir(place.join("plain")).unwrap();
    fs::write(place.join("plain/a"), "a").unwrap();
    let plan = place.join("plan.json");
    let planned =
        planning(place.join("plain").to_str().unwrap(), "s3://bucket/sealed", Wanted::Shards(1), &plan);
    ended_with(0, program(&Ask::Plan(planned)));
    let mut run = program(&Ask::RunShard(shard(&plan, 0, Person::new().as_recipient())));
    run.envs([("AWS_ACCESS_KEY_ID", "user"), ("AWS_SECRET_ACCESS_KEY", "a secret"), ("AWS_REGION", "r")]);
    run.env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")).env("AWS_ALLOW_HTTP", "true");
    let (objects, _) = report(&ended_with(2, run));
    assert!(objects["a"]["error"].as_str().unwrap().contains("s3:ListBucket"), "{objects:?}");
}
