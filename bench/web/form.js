// Runs in the page that answers a form: tells the page around it what Navigation Timing says of the upload.
(function () {
  'use strict';
  function tell() {
    var times = {};
    var timing = window.performance.timing;
    for (var name in timing) {
      if (typeof timing[name] === 'number') {
        times[name] = timing[name] ? timing[name] - timing.navigationStart : null;
      }
    }
    window.parent.postMessage({ evener: 'form', id: window.location.search, navigation: times }, '*');
  }
  // responseEnd and the rest stand when the page is loaded.
  window.addEventListener('load', function () { window.setTimeout(tell, 0); });
})();
