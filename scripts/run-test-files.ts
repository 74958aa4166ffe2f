/**
 * The inner half of `npm test`: runs the test files named as arguments in this process, prints every failure in full
 * and sends the counts to the process that started it. `npm test` kills it when it does not end.
 */
import { join, relative } from 'node:path'
import { run } from 'node:test'
import { inspect } from 'node:util'
import { cpuSecondsOfThisProcess } from './process-load.ts'

export type Report = {
  files: FileReport[]
  failures: Failure[]
  /** Of this process and of all its ended children; only Linux reports it. */
  cpuSeconds: number | undefined
}

/** Times are those until the end of the file: what it leaves running counts for the process alone. */
export type FileReport = {
  file: string
  passed: number
  skipped: number
  /** The skipped tests that give a reason, such as what is not installed. */
  skips: readonly { name: string; reason: string }[]
  seconds: number
  cpuSeconds: number
}

/** One that names none of the files of the process concerns all of them. */
export type Failure = { file: string; name: string }

const group = join(import.meta.dirname, 'test-group.ts')
const short = (file: string | undefined) => (file ? relative(process.cwd(), file) : '')

/** A suite of the root is a file. */
const isFile = ({ nesting }: { nesting: number }) => nesting === 0

/** A parent that fails because of its child is not reported separately. */
const hasStory = (error: Error) => !('failureType' in error && error.failureType === 'subtestsFailed')

const failureText = (name: string, place: string, error: Error): string => {
  const story = inspect(error.cause ?? error, { depth: 6, colors: false })
  return `\nFAILED  ${name}\n        ${place}\n${story.replace(/^/gm, '  ')}\n\n`
}

/** How long the process may run after its last test; hooks that audit users and stop servers are part of it. */
const lingerMs = 60_000

/** Calls `ended` once: at the last test's end, or when a resource that a test opened outlives it. */
const runFiles = async (timeoutMs: number, ended: (report: Report) => void) => {
  const titles: string[] = []
  const report: Report = { files: [], failures: [], cpuSeconds: undefined }
  const fail = (failure: Failure, text: string) => {
    report.failures.push(failure)
    process.stdout.write(text)
  }
  const emptyCounts = () => ({ passed: 0, skipped: 0, skips: [] as { name: string; reason: string }[] })
  let current = emptyCounts()
  // From the end of the file before it: a suite is reported as started when its first test has ended.
  let before = { ms: performance.now(), cpuSeconds: cpuSecondsOfThisProcess() ?? 0 }
  const end = (file: string) => {
    // A hook of the whole process is reported in the same way.
    if (!process.argv.includes(file)) return
    const now = { ms: performance.now(), cpuSeconds: cpuSecondsOfThisProcess() ?? 0 }
    const seconds = (now.ms - before.ms) / 1_000
    report.files.push({ file, ...current, seconds, cpuSeconds: now.cpuSeconds - before.cpuSeconds })
    before = now
  }
  let underWay = 0
  // By the file of the test: those of a shared suite have another one, and the events of files may overlap.
  const filesWithTests = new Set<string | undefined>()
  const hasTests = (name: string) => [...filesWithTests].some((file) => file?.endsWith(name))
  let linger: NodeJS.Timeout | undefined
  const stillOpen = () => {
    const open = [...new Set(process.getActiveResourcesInfo())].join(', ')
    const name = `the tests ended, but their resources did not: ${open}`
    fail({ file: '', name }, `\nFAILED  ${name}\n`)
    ended(report)
  }
  for await (const { type, data } of run({ files: [group], isolation: 'none', timeout: timeoutMs })) {
    if (type === 'test:dequeue') {
      underWay++
      clearTimeout(linger)
    } else if (type === 'test:complete' && --underWay === 0) linger = setTimeout(stillOpen, lingerMs).unref()
    else if (type === 'test:start') {
      titles[data.nesting] = data.name
      if (isFile(data)) current = emptyCounts()
    } else if (type === 'test:pass') {
      if (data.details.type !== 'suite') {
        current[data.skip === undefined ? 'passed' : 'skipped']++
        if (typeof data.skip === 'string') current.skips.push({ name: data.name, reason: data.skip })
        filesWithTests.add(data.file)
      } else if (isFile(data)) {
        end(data.name)
        if (current.passed + current.skipped === 0 && !hasTests(data.name))
          fail({ file: data.name, name: 'holds no test' }, `\nFAILED  ${data.name} holds no test\n`)
      }
    } else if (type === 'test:fail') {
      if (isFile(data)) end(data.name)
      const name = [...titles.slice(1, data.nesting), data.name].join(' > ')
      const { error } = data.details
      const file = isFile(data) ? data.name : titles[0]!
      if (hasStory(error))
        fail({ file, name }, failureText(name, `${short(data.file)}:${data.line ?? ''}`, error))
    } else if (type === 'test:diagnostic') {
      if (/asynchronous activity after the test ended/.test(data.message))
        fail({ file: '', name: data.message }, `\nFAILED  ${data.message}\n`)
      else process.stdout.write(`${data.message}\n`)
    }
  }
  clearTimeout(linger)
  ended(report)
}

if (import.meta.main) {
  const timeoutMs = Number(process.argv[2])
  // Exits explicitly, because an open resource would keep the process alive.
  await runFiles(timeoutMs, (report) =>
    process.send?.({ ...report, cpuSeconds: cpuSecondsOfThisProcess() }, () => process.exit()),
  )
}
