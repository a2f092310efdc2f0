// The page around the measurements: plan -> evener.measure() -> words, curves and table -> the result goes to the server that gave
// this page. Started by a program, it reads its plan from its address and says in its title when it is done.
(function () {
  'use strict';

  var SHORT = [70, 57654, 2359350];
  var POWERS = [64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216];
  var CHART_HEIGHT = 300;
  var NAMES = { up: 'uploads', down: 'downloads', form: 'uploads by a form' };

  function element(id) { return document.getElementById(id); }

  function query() {
    var values = {};
    window.location.search.slice(1).split('&').forEach(function (pair) {
      var at = pair.indexOf('=');
      if (at > 0) { values[pair.slice(0, at)] = decodeURIComponent(pair.slice(at + 1)); }
    });
    return values;
  }

  function withCommas(number) { return String(number).replace(/\B(?=(\d{3})+$)/g, ','); }

  function fail(sentence) {
    element('trouble').textContent = sentence;
    element('trouble').hidden = false;
    element('progress').textContent = '';
    element('start').disabled = false;
    document.title = 'evener: failed: ' + sentence;
  }

  // -- figures ----------------------------------------------------------------------------------------------------

  // The greatest rank whose order statistics hold the median with 95 %, else the extremes (docs/design/measuring.md).
  function boundsRank(count) {
    function level(rank) {
      var term = Math.pow(0.5, count), sum = 0;
      for (var k = 0; k < rank; k += 1) { sum += term; term *= (count - k) / (k + 1); }
      return 1 - 2 * sum;
    }
    var rank = 1;
    while (rank < Math.ceil(count / 2) && level(rank + 1) >= 0.95) { rank += 1; }
    return { rank: rank, level: Math.max(0, level(rank)) };
  }

  function spread(values) {
    var sorted = values.slice().sort(function (a, b) { return a - b; });
    var count = sorted.length, bounds = boundsRank(count);
    return { median: (sorted[(count - 1) >> 1] + sorted[count >> 1]) / 2, low: sorted[bounds.rank - 1],
      high: sorted[count - bounds.rank], level: bounds.level };
  }

  function rowsOf(page, paper) {
    var rows = [];
    ['up', 'form', 'down'].forEach(function (direction) {
      page.sizes.forEach(function (bytes) {
        function times(end) {
          return page.measurements.filter(function (one) {
            return one.direction === direction && one.bytes === bytes && one.end === end;
          }).sort(function (a, b) { return a.round - b.round; }).map(function (one) { return one.ms; });
        }
        var without = times('default'), withUs = times('evener');
        if (without.length === 0) { return; }
        var known = paper.filter(function (row) { return row.bytes === bytes; })[0];
        rows.push({ direction: direction, bytes: bytes, without: spread(without),
          withUs: withUs.length ? spread(withUs) : null,
          ratio: withUs.length ? spread(withUs.map(function (ms, at) { return ms / without[at]; })) : null,
          paper: direction === 'down' ? null : known || null });
      });
    });
    return rows;
  }

  function bounded(of, digits) {
    return of.median.toFixed(digits) + ' [' + of.low.toFixed(digits) + ' ' + of.high.toFixed(digits) + ']';
  }

  // -- words ------------------------------------------------------------------------------------------------------

  var LEVEL_MIN = 0.9; // of bounds by which anything is said to be faster

  function sentence(row) {
    var what = NAMES[row.direction] + ' of ' + withCommas(row.bytes) + ' bytes';
    var ratio = bounded(row.ratio, 3) + ' of the time without it';
    if (row.ratio.low <= 1 && row.ratio.high >= 1 || row.ratio.level < LEVEL_MIN) {
      return 'For ' + what + ' no difference can be told: with Evener\'s provider at the server they take ' + ratio + '.';
    }
    var percent = Math.abs(100 * (1 - row.ratio.median)).toFixed(1);
    return 'With Evener\'s provider at the server ' + what + ' take ' + percent + ' % ' +
      (row.ratio.median < 1 ? 'less' : 'more') + ' time (' + ratio + ').';
  }

  function say(rows) {
    var list = element('words');
    list.textContent = '';
    function item(text) { list.appendChild(document.createElement('li')).textContent = text; }
    ['up', 'form', 'down'].forEach(function (direction) {
      var those = rows.filter(function (row) { return row.direction === direction && row.ratio; });
      if (those.length === 0) { return; }
      item(sentence(those[0]));
      if (those.length > 1) { item(sentence(those[those.length - 1])); }
    });
    if (rows.length) { item('Bounds in brackets hold with ' + (100 * rows[0].without.level).toFixed(1) + ' %.'); }
    var largest = rows.filter(function (row) { return row.paper; }).pop();
    if (largest) {
      item('Paper 003\'s browser took ' + withCommas(largest.paper.with_ms) + ' ms for ' + withCommas(largest.bytes) +
        ' bytes with its crypto module and ' + withCommas(largest.paper.without_ms) + ' ms without: ' +
        (largest.paper.with_ms / largest.paper.without_ms).toFixed(2) + ' of the time. There the browser had the module, here the server has it.');
    }
  }

  function fill(rows) {
    var table = element('table');
    table.textContent = '';
    function line(cells, kind) {
      var row = table.appendChild(document.createElement('tr'));
      cells.forEach(function (cell) { row.appendChild(document.createElement(kind)).textContent = cell; });
    }
    line(['', 'bytes', 'without, ms', 'with, ms', 'ratio', 'paper 003: without, with'], 'th');
    rows.forEach(function (row) {
      line([NAMES[row.direction], withCommas(row.bytes), bounded(row.without, 2), row.withUs ? bounded(row.withUs, 2) : '',
        row.ratio ? bounded(row.ratio, 3) : '', row.paper ? row.paper.without_ms + ', ' + row.paper.with_ms : ''], 'td');
    });
  }

  // -- curves -----------------------------------------------------------------------------------------------------

  function draw(id, rows, withPaper) {
    var place = element(id);
    place.textContent = '';
    if (!window.uPlot || rows.length === 0) { return; }
    var style = window.getComputedStyle(document.documentElement);
    function color(name) { return style.getPropertyValue(name).trim(); }
    function column(value) { return rows.map(value); }
    var data = [column(function (row) { return row.bytes; }), column(function (row) { return row.without.median; }),
      column(function (row) { return row.withUs ? row.withUs.median : null; })];
    var series = [{ label: 'bytes' },
      { label: 'without, ms', stroke: color('--without'), width: 2 }, { label: 'with, ms', stroke: color('--with'), width: 2 }];
    if (withPaper && rows.some(function (row) { return row.paper; })) {
      data.push(column(function (row) { return row.paper ? row.paper.without_ms : null; }),
        column(function (row) { return row.paper ? row.paper.with_ms : null; }));
      series.push({ label: 'paper without', stroke: color('--without'), dash: [6, 4] },
        { label: 'paper with', stroke: color('--with'), dash: [6, 4] });
    }
    var ink = color('--soft'), grid = color('--line');
    function powersOfTen(u, splits) {
      return splits.map(function (v) {
        var exponent = Math.log(v) / Math.LN10;
        return Math.abs(exponent - Math.round(exponent)) < 1e-6 ? v : null;
      });
    }
    function size(v) { return v === null ? '' : v >= 1e6 ? v / 1e6 + ' MB' : v >= 1e3 ? v / 1e3 + ' kB' : v + ' B'; }
    function sizes(u, values) { return values.map(size); }
    var thin = { stroke: grid, width: 0.5 };
    var axis = { stroke: ink, grid: thin, ticks: thin };
    var options = { width: place.clientWidth, height: CHART_HEIGHT, series: series, legend: { live: false }, cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false, distr: 3 }, y: { distr: 3 } },
      axes: [Object.assign({ filter: powersOfTen, values: sizes }, axis), Object.assign({ filter: powersOfTen, size: 72 }, axis)] };
    var chart = new window.uPlot(options, data, place);
    window.addEventListener('resize', function () { chart.setSize({ width: place.clientWidth, height: CHART_HEIGHT }); });
  }

  function show(page, setup) {
    var rows = rowsOf(page, setup.paper);
    element('results').hidden = false;
    say(rows);
    fill(rows);
    var uploads = rows.filter(function (row) { return row.direction === 'up'; });
    if (uploads.length === 0) { uploads = rows.filter(function (row) { return row.direction === 'form'; }); }
    draw('chart-up', uploads, true);
    draw('chart-down', rows.filter(function (row) { return row.direction === 'down'; }), false);
    element('save').href = 'data:application/json,' + encodeURIComponent(JSON.stringify(page, null, 1));
  }

  // -- plan -------------------------------------------------------------------------------------------------------

  function session() { return 'page' + Date.now().toString(36) + Math.floor(Math.random() * 1e9).toString(36); }

  // Both servers as this browser reaches them: at the host that it has this page from.
  function endsOf(setup, suite, names) {
    return setup.ends.filter(function (end) { return !names || names.indexOf(end.name) >= 0; }).map(function (end) {
      return { name: end.name, url: 'https://' + window.location.hostname + ':' + end.ports[suite] };
    });
  }

  function sizesOf(choice, setup) {
    if (choice === 'short') { return SHORT; }
    if (choice === 'powers') { return POWERS; }
    return setup.paper.map(function (row) { return row.bytes; });
  }

  function start(plan, setup) {
    element('start').disabled = true;
    element('trouble').hidden = true;
    evener.measure(plan, function (at, all, turn) {
      element('progress').textContent = at + ' of ' + all + ': ' + NAMES[turn.direction] + ', ' + withCommas(turn.bytes) +
        ' bytes, ' + (turn.end.name === 'evener' ? 'with' : 'without') + ' the provider';
    }, function (page) {
      element('start').disabled = false;
      evener.exchange('PUT', setup.result + page.session, JSON.stringify(page), 'text', function () {
        element('progress').textContent = 'Measured in ' + (page.measured_in_ms / 1000).toFixed(1) + ' s; ' +
          'the result is with the server, too.';
        document.title = 'evener: done';
        show(page, setup);
      }, function (sentence) {
        fail(sentence);
        show(page, setup);
      });
    }, fail);
  }

  function planOfPage(setup) {
    var suite = element('suite').value;
    return { suite: suite, sizes: sizesOf(element('sizes').value, setup), directions: ['up', 'down'],
      rounds: Math.max(1, Number(element('rounds').value) || 5), before: 0, ends: endsOf(setup, suite), session: session(), label: null,
      tells: setup.tells };
  }

  function planOfAddress(values, setup) {
    return { suite: values.suite, sizes: values.sizes.split(',').map(Number), directions: values.directions.split(','),
      rounds: Number(values.rounds), before: Number(values.before) || 0, ends: endsOf(setup, values.suite, values.ends && values.ends.split(',')),
      session: values.session || session(), label: values.label || null, tells: setup.tells };
  }

  function open(setup) {
    setup.suites.forEach(function (suite) {
      var option = element('suite').appendChild(document.createElement('option'));
      option.value = suite.name;
      option.textContent = suite.words;
    });
    element('about').textContent = 'Evener ' + setup.version + '; server: ' + setup.server + '. The curves are drawn by uPlot (MIT licence).' +
      (setup.ends.length < 2 ? ' There is one server only: no provider was named.' : '');
    element('plan').addEventListener('submit', function (event) {
      event.preventDefault();
      start(planOfPage(setup), setup);
    });
    var values = query();
    if (values.auto) {
      element('suite').value = values.suite;
      element('rounds').value = values.rounds;
      start(planOfAddress(values, setup), setup);
    }
  }

  evener.exchange('GET', '/setup.json', null, 'text', function (ended, text) { open(JSON.parse(text)); }, fail);
})();
