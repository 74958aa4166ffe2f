/**
 * `npm test [-- part-of-a-path ...] [--only <glob>] [--full]`: the pure tests in one process, then every other file in
 * a process of its own, some at a time, beside one database cluster. Ends with one line of sums.
 */
import { fork } from 'node:child_process'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { cleanEnvironment, nodeFlags, root } from './environment.ts'
import type { Counts } from './run-test-files.ts'
import { openRunFolder, type RunFolder } from './test-folder.ts'
import { type Batch, batchesOf, choose, discover, isPure, takeFitting } from './test-plan.ts'

type Result = Pick<Counts, 'passed' | 'failed' | 'skipped'>

const { values: options, positionals } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    /** Every kill point and every seed of the proofs that `npm test` only samples. */
    full: { type: 'boolean', default: false },
    /** Also prints what passing files say: seeds, and the figures of proofs. */
    verbose: { type: 'boolean', default: false },
    /** Processes start while the processors that they keep busy are free. */
    processors: { type: 'string', default: String(availableParallelism()) },
  },
  allowPositionals: true,
})
/** The long proofs place 10,000 orders, a few per second; the full ones kill instances that then have to start again. */
const fileTimeoutMs =
  process.env.PROOF === 'nightly'
    ? 3_600_000
    : process.env.PROOF === 'full' || options.full
      ? 900_000
      : 480_000
/** Every later process reads the compile cache; it is in a folder that `npm ci` clears. */
const settings = {
  NODE_COMPILE_CACHE: `${root}/node_modules/.cache/portico-test`,
  ...(options.full && process.env.PROOF === undefined && { PROOF: 'full' }),
}

/** Every child leads a process group, so that all processes of a test end with it, after success and failure. */
const running = new Set<number>()
let stopping = false

const endGroup = (pid: number): void => {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL')
  } catch {
    // The group has ended already.
  }
  running.delete(pid)
}

type Run = Omit<Batch, 'processors'> & { env: NodeJS.ProcessEnv; folder: RunFolder }

const runFiles = ({ label, files, env, folder }: Run): Promise<Result> =>
  new Promise((resolve) => {
    const startMs = performance.now()
    const temporary = folder.open()
    const child = fork(`${root}/scripts/run-test-files.ts`, [String(fileTimeoutMs), ...files], {
      cwd: root,
      env: { ...env, TMPDIR: temporary.path },
      detached: true,
      execArgv: nodeFlags,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    const pid = child.pid
    if (pid) running.add(pid)
    const output: Buffer[] = []
    let counts: Counts | undefined
    let late = false
    child.stdout?.on('data', (chunk: Buffer) => output.push(chunk))
    child.stderr?.on('data', (chunk: Buffer) => output.push(chunk))
    child.on('message', (message: Counts) => {
      counts = message
    })
    const groupTimeoutMs = fileTimeoutMs * Math.min(files.length, 3)
    const watch = setTimeout(() => {
      late = true
      if (pid) endGroup(pid)
    }, groupTimeoutMs)
    child.on('exit', () => pid && endGroup(pid))
    child.on('close', (code, signal) => {
      clearTimeout(watch)
      temporary.remove()
      const seconds = ((performance.now() - startMs) / 1_000).toFixed(1)
      const { passed, failed, skipped, empty, cpuSeconds } = counts ?? {
        passed: 0,
        failed: 1,
        skipped: 0,
        empty: [],
        cpuSeconds: undefined,
      }
      const cpu = cpuSeconds === undefined ? '' : `, ${cpuSeconds.toFixed(1)} s of CPU`
      const result = { passed, failed: failed + empty.length, skipped }
      const verdict = result.failed > 0 ? 'FAILED' : 'passed'
      const sums = `${result.passed} passed, ${result.failed} failed, ${result.skipped} skipped`
      const lines = [`${verdict}  ${label}  (${sums}; ${seconds} s${cpu})`]
      if (result.failed > 0 || options.verbose) lines.push(Buffer.concat(output).toString().trimEnd())
      if (late) lines.push(`  did not end within ${groupTimeoutMs / 1_000} s`)
      else if (!counts) lines.push(`  ended before its tests did: ${signal ?? `exit code ${code}`}`)
      for (const file of empty) lines.push(`  ${file} holds no test`)
      console.log(lines.join('\n'))
      resolve(result)
    })
  })

/** Files that may run a second time; more of them are no coincidence. */
const secondsMax = 8

type Cluster = { url: string; stop: () => Promise<void> }

const startCluster = async (): Promise<Cluster | undefined> => {
  const path = `${root}/test/harness/cluster.ts`
  if (process.env.PORTICO_TEST_DATABASE_URL || !existsSync(path)) return undefined
  const { startTestCluster }: { startTestCluster: () => Promise<Cluster> } = await import(path)
  return startTestCluster()
}

type Judged = { results: Result[]; flaky: string[] }

const runAlone = async (files: readonly string[], folder: RunFolder): Promise<Judged> => {
  if (files.length === 0) return { results: [], flaky: [] }
  const cluster = await startCluster()
  const env = cleanEnvironment({ ...settings, ...(cluster && { PORTICO_TEST_DATABASE_URL: cluster.url }) })
  const queue = batchesOf(files, { short: (process.env.PROOF ?? 'short') === 'short' && !options.full })
  const results = new Map<Batch, Result>()
  const flaky: string[] = []
  const runAll = async () => {
    const active = new Map<Batch, Promise<void>>()
    while (!stopping) {
      const used = [...active.keys()].reduce((sum, { processors }) => sum + processors, 0)
      const next = takeFitting(queue, {
        processors: Number(options.processors) - used,
        idle: active.size === 0,
      })
      if (next) {
        const run = runFiles({ ...next, env, folder }).then((result) => {
          results.set(next, result)
          active.delete(next)
        })
        active.set(next, run)
      } else if (active.size > 0) await Promise.race(active.values())
      else break
    }
    await Promise.all(active.values())
  }
  try {
    await runAll()
    // Files share the processors here, and some tests bound a time. A file that failed beside another one runs once
    // more alone; a second failure, or failures in many files, count.
    const failed = [...results].filter(([, { failed }]) => failed > 0).map(([batch]) => batch)
    for (const batch of failed.length <= secondsMax ? failed : []) {
      if (stopping) break
      const label = `${batch.label}, once more and alone`
      const second = await runFiles({ files: batch.files, label, env, folder })
      results.set(batch, second)
      if (second.failed === 0) flaky.push(batch.label)
    }
  } finally {
    await cluster?.stop()
  }
  return { results: [...results.values()], flaky }
}

const main = async (): Promise<boolean> => {
  const files = choose(discover(), { parts: positionals, globs: options.only })
  const folder = openRunFolder()
  try {
    const pure = files.filter(isPure)
    const env = cleanEnvironment(settings)
    const results =
      pure.length > 0
        ? [await runFiles({ label: `${pure.length} pure files`, files: pure, env, folder })]
        : []
    const others = await runAlone(
      files.filter((file) => !isPure(file)),
      folder,
    )
    results.push(...others.results)
    const sum = (key: keyof Result) => results.reduce((total, result) => total + result[key], 0)
    const passed = sum('passed')
    const failed = sum('failed')
    if (passed + failed === 0) console.log('no test was found')
    const { flaky } = others
    if (flaky.length > 0)
      console.log(`${flaky.length} flaky: failed beside others and passed alone: ${flaky.join(', ')}`)
    console.log(`${passed} passed, ${failed} failed, ${sum('skipped')} skipped`)
    return failed === 0 && passed > 0
  } finally {
    folder.remove()
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    stopping = true
    for (const pid of running) endGroup(pid)
    process.exitCode = 130
  })

if (!(await main())) process.exitCode = 1
