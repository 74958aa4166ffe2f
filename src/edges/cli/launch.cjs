#!/usr/bin/env node
'use strict'
// The package installs this file as `portico`. It has no TypeScript and no new syntax, because a Node that is too old
// for the rest has to read it.
var least = [22, 19]
var own = process.versions.node.split('.').map(Number)
if (own[0] < least[0] || (own[0] === least[0] && own[1] < least[1])) {
  console.error('portico needs Node ' + least.join('.') + ' or later, and this is ' + process.version + '.')
  process.exitCode = 1
} else {
  import('./main.js')
}
