// Measures uploads and downloads. The way of one measurement: measure() -> a turn -> up(), down() or form() -> what
// Resource Timing or Navigation Timing says of it -> at the end what the servers say (spent()) -> one object, which is
// posted. Written for old browsers, too: no promises, no fetch.
var evener = (function () {
  'use strict';

  var FORM_FIELD_BYTES = 4; // "f=" before the value and CR LF behind it, as text/plain is sent
  var LOOKS_FOR_TIMING = 10; // an entry of Resource Timing may come a little after the answer
  var SILENCE_MAX_MS = 300000;

  // The program around the page has a finer clock than old browsers.
  function now() { return window.evenerHost ? window.evenerHost.now_ms() : window.performance.now(); }

  // Core time of the client so far, where the program around the page tells it.
  function coreMs() { return window.evenerHost ? window.evenerHost.core_ms() : null; }

  function body(bytes) {
    var array = new Uint8Array(bytes);
    for (var at = 0; at < bytes; at += 1) { array[at] = 0x42; }
    return array;
  }

  function text(bytes) { return new Array(bytes + 1).join('B'); }

  // Phases as browsertime's scripts take them from an entry of Resource or Navigation Timing.
  function phases(entry) {
    if (!entry || !entry.requestStart || !entry.responseStart) { return null; }
    var secure = entry.secureConnectionStart > 0 ? entry.secureConnectionStart : null;
    return {
      connect_ms: (secure === null ? entry.connectEnd : secure) - entry.connectStart,
      tls_ms: secure === null ? null : entry.connectEnd - secure,
      request_ms: entry.responseStart - entry.requestStart,
      response_ms: entry.responseEnd - entry.responseStart
    };
  }

  function resourceTiming(url, looks, done) {
    if (!window.performance.getEntriesByName) { return done(null); }
    var entries = window.performance.getEntriesByName(url);
    if (entries.length === 0 && looks > 0) {
      window.setTimeout(function () { resourceTiming(url, looks - 1, done); }, 10);
      return;
    }
    if (window.performance.clearResourceTimings) { window.performance.clearResourceTimings(); }
    done(phases(entries[entries.length - 1]));
  }

  function lost(url) {
    return 'no answer from ' + url.replace(/\?.*/, '') + ': the server is gone, or this browser does not take its certificate; ' +
      'open ' + url.replace(/^(https:\/\/[^/]*).*/, '$1') + '/ once and look';
  }

  function exchange(method, url, sent, wanted, done, fail) {
    var request = new XMLHttpRequest();
    request.open(method, url);
    request.responseType = wanted;
    request.timeout = SILENCE_MAX_MS;
    // A kind that needs no question to the other server before.
    if (sent !== null) { request.setRequestHeader('Content-Type', 'text/plain'); }
    request.onload = function () {
      var ended = now();
      if (request.status < 200 || request.status > 299) { return fail(refusal(url, request, wanted)); }
      done(ended, request.response);
    };
    request.onerror = function () { fail(lost(url)); };
    request.ontimeout = function () { fail(lost(url)); };
    request.send(sent);
  }

  function refusal(url, request, wanted) {
    var words = wanted === 'arraybuffer' ? '' : ': ' + request.response;
    return url.replace(/\?.*/, '') + ' answered ' + request.status + words;
  }

  function up(end, turn, done, fail) {
    var url = end.url + '/up?id=' + turn.id;
    var sent = turn.body;
    var core = coreMs(), began = now();
    exchange('POST', url, sent, 'text', function (ended) {
      finish(turn, url, began, ended, core, done);
    }, fail);
  }

  function down(end, turn, done, fail) {
    var url = end.url + '/down?bytes=' + turn.bytes + '&id=' + turn.id;
    var core = coreMs(), began = now();
    exchange('GET', url, null, 'arraybuffer', function (ended, got) {
      if (got.byteLength !== turn.bytes) { return fail(url + ' gave ' + got.byteLength + ' bytes'); }
      finish(turn, url, began, ended, core, done);
    }, fail);
  }

  function finish(turn, url, began, ended, core, done) {
    var used = core === null ? null : coreMs() - core;
    resourceTiming(url, LOOKS_FOR_TIMING, function (entry) {
      done({ ms: ended - began, client_core_ms: used, phases: entry, navigation: null });
    });
  }

  // As the paper did it: a form is sent, and the page that answers reads its own Navigation Timing.
  function form(end, turn, done, fail) {
    var query = '?id=' + turn.id;
    var frame = document.createElement('iframe');
    frame.name = 'answer';
    frame.hidden = true;
    var sheet = document.createElement('form');
    sheet.method = 'post';
    sheet.enctype = 'text/plain';
    sheet.target = 'answer';
    sheet.action = end.url + '/form.html' + query;
    var field = document.createElement('input');
    field.type = 'hidden';
    field.name = 'f';
    field.value = turn.body;
    sheet.appendChild(field);
    document.body.appendChild(frame);
    document.body.appendChild(sheet);
    var core = coreMs(), began = now(), ended = null, used = null;
    var overdue = window.setTimeout(function () { leave(); fail(lost(sheet.action)); }, SILENCE_MAX_MS);
    function leave() {
      window.clearTimeout(overdue);
      window.removeEventListener('message', hear);
      document.body.removeChild(frame);
      document.body.removeChild(sheet);
    }
    function hear(message) {
      if (!message.data || message.data.evener !== 'form' || message.data.id !== query) { return; }
      ended = now();
      used = core === null ? null : coreMs() - core;
      leave();
      var times = message.data.navigation;
      done({ ms: ended - began, client_core_ms: used, phases: phases(times), navigation: times });
    }
    window.addEventListener('message', hear);
    sheet.submit();
  }

  var WAYS = { up: up, down: down, form: form };

  // All turns in their order: ends take turns, and who went first goes last in the next round, those of pages before this one (plan.before) counted.
  function turns(plan) {
    var all = [];
    for (var round = 0; round <= plan.rounds; round += 1) {
      for (var size = 0; size < plan.sizes.length; size += 1) {
        for (var way = 0; way < plan.directions.length; way += 1) {
          for (var turn = 0; turn < plan.ends.length; turn += 1) {
            var end = plan.ends[(plan.before + round + turn) % plan.ends.length];
            // The round before the first warms up, with the smallest size.
            if (round > 0 || size === 0) {
              all.push({ round: round, bytes: plan.sizes[size], direction: plan.directions[way], end: end });
            }
          }
        }
      }
    }
    return all;
  }

  function prepare(turn) {
    if (turn.direction === 'up') { turn.body = body(turn.bytes); }
    if (turn.direction === 'form') { turn.body = text(Math.max(0, turn.bytes - FORM_FIELD_BYTES)); }
  }

  // What the servers saw, joined to what was measured here.
  function spent(plan, rows, done, fail) {
    var left = plan.ends.slice();
    function next() {
      if (left.length === 0) { return done(); }
      var end = left.shift();
      if (!plan.tells) { return next(); }
      exchange('GET', end.url + '/spent?session=' + plan.session, null, 'text', function (ended, text) {
        var seen = JSON.parse(text);
        rows.forEach(function (row) { if (seen[row.id]) { row.server = seen[row.id]; } });
        next();
      }, fail);
    }
    next();
  }

  // Measures plan {suite, sizes, directions, rounds, before, ends: [{name, url}], session, tells}: progress(done, all, turn) on the
  // way, then done(page) or fail(sentence).
  function measure(plan, progress, done, fail) {
    var all = turns(plan), rows = [], at = 0;
    var began = now();
    function next() {
      if (at === all.length) {
        return spent(plan, rows, function () { done(page(plan, rows, now() - began)); }, fail);
      }
      var turn = all[at];
      at += 1;
      turn.id = plan.session + '.' + at;
      prepare(turn);
      progress(at, all.length, turn);
      WAYS[turn.direction](turn.end, turn, function (measured) {
        turn.body = null;
        if (turn.round > 0) {
          rows.push({ id: turn.id, round: turn.round, direction: turn.direction, bytes: turn.bytes, end: turn.end.name,
            ms: measured.ms, client_core_ms: measured.client_core_ms, phases: measured.phases,
            navigation: measured.navigation, server: null });
        }
        // Out of the answer's own stack, and after the browser has tidied up.
        window.setTimeout(next, 0);
      }, fail);
    }
    next();
  }

  function page(plan, rows, ms) {
    return { schema: 'evener-tls-page/1', session: plan.session, agent: window.navigator.userAgent, label: plan.label, suite: plan.suite,
      rounds: plan.rounds, sizes: plan.sizes, measured_in_ms: ms, measurements: rows };
  }

  return { measure: measure, exchange: exchange };
})();
