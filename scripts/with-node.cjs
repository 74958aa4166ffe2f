'use strict'
// Runs its arguments on the project's own Node: `node scripts/with-node.cjs src/main.ts`.
// The Node comes as an optional dependency, and npm up to 11.6 loses its link in node_modules/.bin when it skips
// the packages of the other platforms, since all of them would put their `node` in that one place. No TypeScript
// here, because the Node that the machine brings has to read it.
const { spawn } = require('node:child_process')
const { existsSync } = require('node:fs')
const { join } = require('node:path')

const windows = process.platform === 'win32'
const home = join(__dirname, '..', 'node_modules', `node-${windows ? 'win' : process.platform}-${process.arch}`)
const own = join(home, 'bin', windows ? 'node.exe' : 'node')
const known = existsSync(own)

if (!known && Number(process.versions.node.split('.')[0]) < 24) {
  console.error(
    `This needs Node 24, and this is ${process.version}. npm brings a fitting one unless it is told to omit optional dependencies: npm ci --include=optional`,
  )
  process.exit(1)
}

const child = spawn(known ? own : process.execPath, process.argv.slice(2), { stdio: 'inherit' })
// A terminal sends its interrupt to both; forwarded, it would arrive twice and cut the orderly end short.
process.on('SIGINT', () => {})
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('error', (error) => {
  console.error(error.message)
  process.exitCode = 1
})
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code)
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
})
