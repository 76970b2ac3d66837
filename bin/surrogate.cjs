#!/usr/bin/env node
// The command line of the published package. Plain old JavaScript, so that a Node that is too old says so instead of failing on syntax.
var needed = /\d+(\.\d+)*/.exec(require('../package.json').engines.node)[0].split('.').map(Number)
var present = process.versions.node.split('.').map(Number)
var tooOld = present[0] < needed[0] || (present[0] === needed[0] && present[1] < needed[1])
if (tooOld) {
  console.error(`Surrogate needs Node ${needed.join('.')} or newer, and this is ${process.version}.`)
  process.exit(2)
}
import('./surrogate.js').catch((error) => {
  console.error(error)
  process.exit(1)
})
