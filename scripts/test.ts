/**
 * `npm test [-- part-of-a-path ...] [--only <glob>] [--full]`: groups of test files, each in a process of its own, as
 * many at a time as the processors carry, beside one database cluster. Ends with one line of sums.
 */
import { fork } from 'node:child_process'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { bundleProcesses } from './bundle.ts'
import { cleanEnvironment, nodeFlags, root } from './environment.ts'
import { cpuSecondsOfThisProcess, createLoadMeter } from './process-load.ts'
import type { Failure, FileReport, Report } from './run-test-files.ts'
import { openRunFolder, type RunFolder } from './test-folder.ts'
import {
  budgetCpuSeconds,
  choose,
  discover,
  type Group,
  groupsOf,
  isDurationProof,
  isPure,
  type Size,
} from './test-plan.ts'

const { values: options, positionals } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    /** All files, with every kill point and every seed of the proofs that `npm test` only samples. */
    full: { type: 'boolean', default: false },
    /** Also prints what passing files say, seeds and figures of proofs, and what each file took. */
    verbose: { type: 'boolean', default: false },
    processors: { type: 'string', default: String(availableParallelism()) },
  },
  allowPositionals: true,
})
const processors = Number(options.processors)
const proofs = ['short', 'full', 'nightly']
const proof = process.env.PROOF || (options.full ? 'full' : 'short')
if (!proofs.includes(proof)) throw new Error(`PROOF must be one of ${proofs.join(', ')}, not ${proof}`)
const size: Size = options.full || proof !== 'short' ? 'all' : 'test'
/** The long proofs place 10,000 orders, a few per second; the full ones kill instances that then have to start again. */
const fileTimeoutMs = proof === 'nightly' ? 3_600_000 : proof === 'full' ? 900_000 : 480_000
const sampleMs = 1_000
/** Groups that wait for most of their time keep no processor busy; more of them at once would all wake together. */
const groupsMax = processors * 2

/** Every child leads a process group, so that all processes of a test end with it, after success and failure. */
const running = new Set<number>()
let stopping = false
const meter = createLoadMeter()

const endGroup = (pid: number): void => {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL')
  } catch {
    // The group has ended already.
  }
  running.delete(pid)
  meter.remove(pid)
}

type Run = Group & { env: NodeJS.ProcessEnv; folder: RunFolder }
type Result = Report & { group: Group; seconds: number }

const runGroup = ({ env, folder, ...group }: Run): Promise<Result> =>
  new Promise((resolve, reject) => {
    const { label, files } = group
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
    if (pid) {
      running.add(pid)
      meter.add(pid)
    }
    child.on('error', reject)
    const output: Buffer[] = []
    let report: Report = { files: [], failures: [], cpuSeconds: undefined }
    let hasReported = false
    let late = false
    child.stdout?.on('data', (chunk: Buffer) => output.push(chunk))
    child.stderr?.on('data', (chunk: Buffer) => output.push(chunk))
    child.on('message', (message: Report) => {
      report = message
      hasReported = true
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
      const seconds = (performance.now() - startMs) / 1_000
      const early = late
        ? `did not end within ${groupTimeoutMs / 1_000} s`
        : `ended before its tests did: ${signal ?? `exit code ${code}`}`
      if (!hasReported) report.failures.push({ file: label, name: early })
      const { failures, cpuSeconds } = report
      const cpu = cpuSeconds === undefined ? '' : `, ${cpuSeconds.toFixed(1)} s of CPU`
      const lines = [
        `${failures.length > 0 ? 'FAILED' : 'passed'}  ${label}  (${sums(report.files, failures)}; ${seconds.toFixed(1)} s${cpu})`,
      ]
      if (failures.length > 0 || options.verbose) lines.push(Buffer.concat(output).toString().trimEnd())
      if (!hasReported) lines.push(`  ${early}`)
      console.log(lines.join('\n'))
      resolve({ ...report, group, seconds })
    })
  })

const sums = (files: readonly FileReport[], failures: readonly unknown[]): string => {
  const sum = (key: 'passed' | 'skipped') => files.reduce((total, file) => total + file[key], 0)
  return `${sum('passed')} passed, ${failures.length} failed, ${sum('skipped')} skipped`
}

type Cluster = { url: string; stop: () => Promise<void> }

const startCluster = async (): Promise<Cluster | undefined> => {
  const path = `${root}/test/harness/cluster.ts`
  if (process.env.PORTICO_TEST_DATABASE_URL || !existsSync(path)) return undefined
  const { startTestCluster }: { startTestCluster: () => Promise<Cluster> } = await import(path)
  return startTestCluster()
}

type RunOne = (group: Group) => Promise<Result>

/** Another group, which adds a thread on average, fits where the load does not exceed the processors by half with it. */
const hasRoom = (active: number): boolean => {
  if (active === 0) return true
  if (!meter.isMeasured) return active < processors
  return active < groupsMax && meter.total() + 1 <= processors * 1.5
}

/** As many groups at a time as the processors carry, then the proofs of durations one by one. */
const runAll = async (groups: readonly Group[], runOne: RunOne): Promise<Result[]> => {
  const queue = groups.filter(({ files }) => !files.some(isDurationProof))
  const results: Result[] = []
  const active = new Set<Promise<unknown>>()
  while (!stopping && (queue.length > 0 || active.size > 0)) {
    if (queue.length > 0 && hasRoom(active.size)) {
      const run = runOne(queue.shift()!).then((result) => {
        results.push(result)
        active.delete(run)
      })
      active.add(run)
    }
    await Promise.race([delay(sampleMs), ...active])
    meter.sample()
  }
  await Promise.all(active)
  for (const group of groups)
    if (!stopping && group.files.some(isDurationProof)) results.push(await runOne(group))
  return results
}

/** Where more tests than these have failed, none runs again. */
const repeatsMax = 12

/**
 * What failed beside other tests runs once more alone: a second failure counts, and a success makes the test flaky.
 * Returns the results with the second run in place of the first, and the flaky tests.
 */
const repeatFailed = async (results: readonly Result[], runOne: RunOne) => {
  const flaky: Failure[] = []
  const repeats = results.map(({ group, failures }) => {
    const ofProcess = failures.some(({ file }) => !group.files.includes(file))
    return ofProcess
      ? group.files
      : group.files.filter((file) => failures.some((failure) => failure.file === file))
  })
  if (results.reduce((sum, { failures }) => sum + failures.length, 0) > repeatsMax) return { results, flaky }
  const final: Result[] = []
  for (const [index, first] of results.entries()) {
    const files = repeats[index]!
    if (files.length === 0 || stopping) {
      final.push(first)
      continue
    }
    const second = await runOne({ label: `${files.join(', ')}, once more and alone`, files })
    const failedAgain = (file: string) => second.failures.some((failure) => failure.file === file)
    flaky.push(...first.failures.filter(({ file }) => !failedAgain(file)))
    const others = first.files.filter(({ file }) => !files.includes(file))
    final.push({ ...first, files: [...others, ...second.files], failures: second.failures })
  }
  return { results: final, flaky }
}

const shownMax = 10

const printCosts = (results: readonly Result[]): void => {
  const row = (cpuSeconds: number, seconds: number, name: string) =>
    console.log(`${cpuSeconds.toFixed(1).padStart(7)} ${seconds.toFixed(1).padStart(7)}  ${name}`)
  const expensive = results.toSorted((a, b) => (b.cpuSeconds ?? b.seconds) - (a.cpuSeconds ?? a.seconds))
  console.log(
    `\nThe most expensive ${Math.min(shownMax, expensive.length)} of ${expensive.length} groups\n  CPU s       s`,
  )
  for (const { cpuSeconds, seconds, group } of expensive.slice(0, shownMax))
    row(cpuSeconds ?? 0, seconds, group.label)
  if (!options.verbose) return
  console.log('\nAll files\n  CPU s       s')
  for (const { cpuSeconds, seconds, file } of expensive
    .flatMap(({ files }) => files)
    .toSorted((a, b) => b.cpuSeconds - a.cpuSeconds))
    row(cpuSeconds, seconds, file)
}

/**
 * What the whole size took, with its database and its repetitions, where the system reports it; true where that is too
 * much. Processes that outlive a killed gateway are not counted.
 */
const exceedsBudget = (): boolean => {
  const cpuSeconds = cpuSecondsOfThisProcess()
  if (cpuSeconds === undefined) return false
  const budget = budgetCpuSeconds[size]
  console.log(`${cpuSeconds.toFixed(0)} processor seconds; the budget is ${budget}`)
  if (proof === 'nightly' || cpuSeconds <= budget * 3) return false
  console.log(
    'More than three times the budget of scripts/test-plan.ts: make files cheaper, or move some of `npm test` to `laterFiles`',
  )
  return process.env.CI === 'true'
}

const main = async (): Promise<boolean> => {
  const isWhole = positionals.length === 0 && options.only.length === 0
  const files = choose(discover(), { parts: positionals, globs: options.only, size })
  const folder = openRunFolder()
  let cluster: Cluster | undefined
  try {
    cluster = files.every(isPure) ? undefined : await startCluster()
    const env = cleanEnvironment({
      // Every later process reads the compile cache; it is in a folder that `npm ci` clears.
      NODE_COMPILE_CACHE: `${root}/node_modules/.cache/portico-test`,
      // On two processors the four helper threads of each V8 only keep each other waiting.
      NODE_OPTIONS: `--import=${await bundleProcesses()} --v8-pool-size=1`,
      PROOF: proof,
      ...(cluster && { PORTICO_TEST_DATABASE_URL: cluster.url }),
    })
    const runOne: RunOne = (group) => runGroup({ ...group, env, folder })
    const first = await runAll(groupsOf(files, size), runOne)
    const { results, flaky } = await repeatFailed(first, runOne)
    // Its processes count for the budget once they have ended.
    await cluster?.stop()
    cluster = undefined
    if (results.length > shownMax) printCosts(first)
    const isOver = isWhole && exceedsBudget()
    for (const { file, name } of flaky) console.log(`flaky, failed in 1 of 2 runs: ${file} > ${name}`)
    const failures = results.flatMap((result) => result.failures)
    if (size === 'all') failures.push(...flaky)
    const reports = results.flatMap((result) => result.files)
    for (const { file, skips } of reports)
      for (const { name, reason } of skips) console.log(`skipped: ${file} > ${name}: ${reason}`)
    const tests = reports.reduce((sum, { passed }) => sum + passed, 0) + failures.length
    if (tests === 0) console.log('no test ran')
    console.log(`${flaky.length} flaky`)
    console.log(sums(reports, failures))
    return failures.length === 0 && tests > 0 && !isOver
  } finally {
    for (const pid of running) endGroup(pid)
    await cluster?.stop()
    folder.remove()
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    stopping = true
    for (const pid of running) endGroup(pid)
    process.exitCode = 130
  })

if (!(await main())) process.exitCode ??= 1
