'use strict'
// Runs its arguments on the project's own Node: `node scripts/with-node.cjs src/entry.js`.
// The Node comes as an optional dependency, and npm up to 11.6 loses its link in node_modules/.bin when it skips
// the packages of the other platforms, since all of them would put their `node` in that one place. No TypeScript
// here, because the Node that the machine brings has to read it.
const { execFileSync, spawn } = require('node:child_process')
const { existsSync, readFileSync } = require('node:fs')
const { dirname, join } = require('node:path')

const windows = process.platform === 'win32'
const nodePackage = `node-${windows ? 'win' : process.platform}-${process.arch}`
const fits = Number(process.versions.node.split('.')[0]) >= 24
const node = ownNode() || (fits ? process.execPath : fetchedNode())

function ownNode() {
  try {
    const manifest = require.resolve(`${nodePackage}/package.json`)
    const path = join(dirname(manifest), 'bin', windows ? 'node.exe' : 'node')
    return existsSync(path) ? path : undefined
  } catch {
    return undefined
  }
}

// The published package brings no Node, because most machines have one. npm keeps what it fetches in its own cache.
function fetchedNode() {
  const version = require('../package.json').optionalDependencies[nodePackage]
  const needs = `Portico needs Node 24 or later, and this is ${process.version}`
  const install = 'Install Node 24 or later: https://nodejs.org'
  if (version === undefined) {
    console.error(`${needs}. npm has none for ${process.platform}-${process.arch}. ${install}`)
    process.exit(1)
  }
  console.error(`${needs}: npm fetches ${nodePackage} ${version}, and keeps it.`)
  const quiet = ['--yes', '--loglevel=error', '--no-update-notifier']
  const words = ['exec', ...quiet, `--package=${nodePackage}@${version}`, '--', 'node', '-p', 'process.execPath']
  try {
    const stdio = ['ignore', 'pipe', 'inherit']
    const path = execFileSync('npm', words, { encoding: 'utf8', stdio, shell: windows }).trim()
    // An npm that links no program of the package runs the machine's own Node instead.
    if (path !== process.execPath) return path
  } catch {
    // What npm said is on the screen already.
  }
  console.error(`npm could not fetch it. ${install}`)
  process.exit(1)
}

// The channel carries no messages: it closes when this process ends in whatever way, and the gateway then stops.
const child = spawn(node, process.argv.slice(2), {
  stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
})
// A signal may come to this process alone, or to its whole group. The gateway takes the copy of a signal that its group
// got for the same stop. Other commands end at the second interrupt, and terminals send it to the whole group.
const isGateway = process.argv.some((word) => /[\\/]entry\.js$/.test(word))
let watch
for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'])
  process.on(signal, () => {
    if (signal === 'SIGINT' && !isGateway) return
    clearInterval(watch)
    child.kill(signal)
  })
child.on('error', (error) => {
  console.error(`The Node at ${node} does not start here: ${error.message}`)
  process.exitCode = 1
})
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code)
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
})

const parentOf = (pid) => {
  try {
    if (process.platform === 'linux') return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) . /s, '').split(' ')[0])
    return Number(execFileSync('ps', ['-o', 'ppid=', '-p', String(pid)], { encoding: 'utf8' }))
  } catch {
    return 0
  }
}

const isGone = (pid) => {
  try {
    process.kill(pid, 0)
    // A killed process keeps its pid until its parent takes note of its end.
    return process.platform === 'linux' && /^.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch (error) {
    return error.code === 'ESRCH' || error.code === 'ENOENT'
  }
}

// npm runs a script through a shell, and a signal to npm does not always reach what the shell runs.
if (process.env.npm_lifecycle_event && !windows) {
  const above = [process.ppid]
  const next = parentOf(process.ppid)
  // Without a shell between them, the process above npm is its caller, which may well end before it.
  if (next > 1 && /^(sh|dash|bash|zsh|ash|busybox)$/.test(nameOf(process.ppid))) above.push(next)
  watch = setInterval(() => {
    if (!above.some(isGone)) return
    clearInterval(watch)
    child.kill('SIGTERM')
  }, 500)
  watch.unref()
}

function nameOf(pid) {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
    return execFileSync('ps', ['-o', 'comm=', '-p', String(pid)], { encoding: 'utf8' }).trim().replace(/^.*\/|^-/g, '')
  } catch {
    return ''
  }
}
