/** `npm start` under a person and under a supervisor: when it ends, everything that it started ends. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { childEnvironment } from '../harness/child-environment.ts'
import { dataFolder, eventually, type Gateway, launch } from '../harness/gateway.ts'
import { processesOf, programOf } from '../harness/processes.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const linux = { skip: process.platform === 'linux' ? false : 'reads /proc' }

const isProvider = (pid: number) =>
  /(solver|lifi).process\.ts/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))

const npmStart = (dataDir: string): { npm: ChildProcess; ready: Promise<string>; lines: string[] } => {
  const npm = spawn('npm', ['start'], {
    cwd: root,
    detached: true,
    env: { ...childEnvironment(), DATA_DIR: dataDir, PORT: '0', WORLD_PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  npm.stderr?.resume()
  const lines: string[] = []
  const ready = new Promise<string>((resolve, reject) => {
    createInterface({ input: npm.stdout! }).on('line', (line) => {
      lines.push(line)
      const found = /^portico ready (\S+)$/.exec(line)
      if (found) resolve(found[1]!)
    })
    npm.once('exit', (code) => reject(new Error(`npm start ended with ${code}`)))
  })
  return { npm, ready, lines }
}

const killAll = (dataDir: string) => {
  for (const pid of processesOf(dataDir)) process.kill(pid, 'SIGKILL')
}
const untilEnded = (dataDir: string) =>
  eventually(async () => (processesOf(dataDir).length === 0 ? true : undefined), 'everything ended', 30_000)

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
  test(`${signal} to the process group stops everything once, in order`, linux, async (t) => {
    using folder = dataFolder()
    const { npm, ready, lines } = npmStart(folder.path)
    t.after(() => killAll(folder.path))
    await ready
    process.kill(-npm.pid!, signal)
    await untilEnded(folder.path)
    const said = lines.filter((line) => line.startsWith('portico stop'))
    assert.deepEqual(said, [`portico stopping (${signal})`, 'portico stopped'])
  })

for (const [what, stop] of [
  ['SIGTERM to the process group', (npm: ChildProcess) => process.kill(-npm.pid!, 'SIGTERM')],
  // A shell below npm keeps an interrupt for itself: only a terminal sends it, and to the whole group.
  ['SIGTERM to npm alone', (npm: ChildProcess) => npm.kill('SIGTERM')],
] as const)
  test(`${what} gives up a first start and ends all of it, and the next start is whole`, linux, async (t) => {
    using folder = dataFolder()
    const { npm, ready, lines } = npmStart(folder.path)
    t.after(() => killAll(folder.path))
    ready.catch(() => {})
    const chains = () => processesOf(folder.path).filter((pid) => programOf(pid) === 'anvil')
    await eventually(async () => chains().length === 4, 'the chains of the world start')
    stop(npm)
    await untilEnded(folder.path)
    assert.equal(lines.at(-1), 'portico stopped')
    assert.deepEqual(
      lines.filter((line) => /^(docs|portico ready) /.test(line)),
      [],
    )
    const gateway = await launch({ env: { DATA_DIR: folder.path } })
    assert.equal(await gateway.stop(), 0)
    await untilEnded(folder.path)
  })

for (const [what, stop] of [
  ['after its time', ({ stop: end }: Gateway) => end()],
  [
    'by a second signal',
    async ({ child }: Gateway) => {
      const hasEnded = async () => {
        child.kill('SIGTERM')
        return child.exitCode !== null
      }
      // This is less than a stop has without a second signal.
      await eventually(hasEnded, 'the end of the gateway', 8_000)
      return child.exitCode
    },
  ],
] as const)
  test(
    `a stop that cannot end in order is forced ${what}: it says so, and leaves no process`,
    linux,
    async (t) => {
      using folder = dataFolder()
      const gateway = await launch({ env: { DATA_DIR: folder.path } })
      t.after(() => killAll(folder.path))
      const world = processesOf(folder.path).find((pid) =>
        readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('/world/process.ts'),
      )
      process.kill(world!, 'SIGSTOP')
      assert.equal(await stop(gateway), 1)
      await untilEnded(folder.path)
      assert.equal(gateway.lines.at(-1), 'portico stopped before everything was closed')
    },
  )

for (const [what, pidOf] of [
  ['npm', (npm: ChildProcess) => npm.pid!],
  [
    'the launcher',
    (npm: ChildProcess, dataDir: string) =>
      processesOf(dataDir).find((pid) => {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
        return pid !== npm.pid && words[1]?.endsWith('with-node.cjs')
      })!,
  ],
] as const)
  test(`a killed ${what} leaves no gateway, world or database behind`, linux, async (t) => {
    using folder = dataFolder()
    const { npm, ready } = npmStart(folder.path)
    t.after(() => killAll(folder.path))
    await ready
    await eventually(
      async () => (processesOf(folder.path).filter(isProvider).length === 2 ? true : undefined),
      'the providers of swaps run before the first swap',
      30_000,
    )
    process.kill(pidOf(npm, folder.path), 'SIGKILL')
    await untilEnded(folder.path)
    assert.equal(statSync(folder.path).mode & 0o066, 0, 'the data folder is closed to others')
    const open = readdirSync(join(folder.path, 'world')).filter(
      (name) => (statSync(join(folder.path, 'world', name)).mode & 0o077) !== 0,
    )
    assert.deepEqual(open, [], 'so are the files of the world')
  })
