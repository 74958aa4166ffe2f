/**
 * `npm test [-- part-of-a-path ...] [--only <glob>]`: the pure tests in one process, then every other file in a
 * process of its own, two at a time, beside one database cluster. Ends with one line of sums.
 */
import { fork } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { matchesGlob, sep } from 'node:path'
import { parseArgs } from 'node:util'
import { cleanEnvironment, nodeFlags, root } from './environment.ts'
import type { Counts } from './test-files.ts'

type Result = Omit<Counts, 'empty'>

/** The long proofs place 10,000 orders, a few in a second. */
const fileTimeoutMs = process.env.PROOF === 'nightly' ? 3_600_000 : 480_000
const abreast = 2

/** Tests beside a file that starts processes or opens a database are journeys in all but place. */
const alone = /^(test\/(?!architecture\.test\.ts)|src\/(world|store)\/)/

const discover = (): string[] =>
  ['src', 'test']
    .filter((folder) => existsSync(`${root}/${folder}`))
    .flatMap((folder) =>
      readdirSync(`${root}/${folder}`, { recursive: true, encoding: 'utf8' }).map(
        (name) => `${folder}/${name.split(sep).join('/')}`,
      ),
    )
    .filter((path) => path.endsWith('.test.ts'))
    .sort()

const choose = (files: string[]): string[] => {
  const { values, positionals } = parseArgs({
    options: { only: { type: 'string', multiple: true } },
    allowPositionals: true,
  })
  const globs = values.only ?? []
  if (globs.length === 0 && positionals.length === 0) return files
  return files.filter(
    (file) =>
      globs.some((glob) => matchesGlob(file, glob)) || positionals.some((part) => file.includes(part)),
  )
}

/** Every child leads a process group, so that what a test started ends with it, however the test ended. */
const running = new Set<number>()
let stopping = false

const endGroup = (pid: number): void => {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL')
  } catch {
    // Nothing of it is left, which is what was wanted.
  }
  running.delete(pid)
}

const runFiles = (label: string, files: string[], env: NodeJS.ProcessEnv): Promise<Result> =>
  new Promise((resolve) => {
    const startMs = performance.now()
    const child = fork(`${root}/scripts/test-files.ts`, [String(fileTimeoutMs), ...files], {
      cwd: root,
      env,
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
    const watch = setTimeout(() => {
      late = true
      if (pid) endGroup(pid)
    }, fileTimeoutMs)
    child.on('exit', () => pid && endGroup(pid))
    child.on('close', (code, signal) => {
      clearTimeout(watch)
      const seconds = ((performance.now() - startMs) / 1_000).toFixed(1)
      const { passed, failed, skipped, empty } = counts ?? { passed: 0, failed: 1, skipped: 0, empty: [] }
      const result = { passed, failed: failed + empty.length, skipped }
      const verdict = result.failed > 0 ? 'FAILED' : 'passed'
      const sums = `${result.passed} passed, ${result.failed} failed, ${result.skipped} skipped`
      const lines = [`${verdict}  ${label}  (${sums}; ${seconds} s)`]
      if (result.failed > 0) lines.push(Buffer.concat(output).toString().trimEnd())
      if (late) lines.push(`  did not end within ${fileTimeoutMs / 1_000} s`)
      else if (!counts) lines.push(`  ended before its tests did: ${signal ?? `exit code ${code}`}`)
      for (const file of empty) lines.push(`  ${file} holds no test`)
      console.log(lines.join('\n'))
      resolve(result)
    })
  })

/** Files that may be judged a second time; more of them are no chance. */
const secondsMax = 8

type Cluster = { url: string; stop: () => Promise<void> }

const startCluster = async (): Promise<Cluster | undefined> => {
  const path = `${root}/test/harness/cluster.ts`
  if (process.env.PORTICO_TEST_DATABASE_URL || !existsSync(path)) return undefined
  const { startTestCluster }: { startTestCluster: () => Promise<Cluster> } = await import(path)
  return startTestCluster()
}

const runAlone = async (files: string[]): Promise<Result[]> => {
  if (files.length === 0) return []
  const cluster = await startCluster()
  const env = cleanEnvironment(cluster && { PORTICO_TEST_DATABASE_URL: cluster.url })
  const queue = [...files]
  const results = new Map<string, Result>()
  const lane = async () => {
    for (let file = queue.shift(); file && !stopping; file = queue.shift())
      results.set(file, await runFiles(file, [file], env))
  }
  try {
    await Promise.all(Array.from({ length: abreast }, lane))
    // Files share the processors here, and some tests bound a time. A file that failed beside another one is judged
    // once more with the machine to itself; what fails twice, or fails in many places, has failed.
    const failed = [...results].filter(([, { failed }]) => failed > 0).map(([file]) => file)
    if (failed.length <= secondsMax)
      for (const file of failed)
        if (!stopping) results.set(file, await runFiles(`${file}, once more and alone`, [file], env))
  } finally {
    await cluster?.stop()
  }
  return [...results.values()]
}

const main = async (): Promise<boolean> => {
  const files = choose(discover())
  const pure = files.filter((file) => !alone.test(file))
  const results =
    pure.length > 0 ? [await runFiles(`${pure.length} pure files`, pure, cleanEnvironment())] : []
  results.push(...(await runAlone(files.filter((file) => alone.test(file)))))
  const sum = (key: keyof Result) => results.reduce((total, result) => total + result[key], 0)
  const passed = sum('passed')
  const failed = sum('failed')
  if (passed + failed === 0) console.log('no test was found')
  console.log(`${passed} passed, ${failed} failed, ${sum('skipped')} skipped`)
  return failed === 0 && passed > 0
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    stopping = true
    for (const pid of running) endGroup(pid)
    process.exitCode = 130
  })

if (!(await main())) process.exitCode = 1
