/**
 * The inner half of `npm test`: runs the test files named as arguments in this process, prints every failure in full
 * and sends the counts to the process that started it. `npm test` kills it when it does not end.
 */
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { run } from 'node:test'
import { inspect } from 'node:util'

export type Counts = {
  passed: number
  failed: number
  skipped: number
  empty: string[]
  /** Of this process and of all its ended children; only Linux reports it. */
  cpuSeconds: number | undefined
}

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

/** Fields 14 to 17 of `stat`, after a name in brackets that may contain anything, in hundredths of a second. */
const cpuSeconds = (): number | undefined => {
  if (process.platform !== 'linux') return undefined
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100
}

/** How long the process may run after its last test; hooks that audit users and stop servers are part of it. */
const lingerMs = 60_000

/** Calls `ended` once: at the last test's end, or when a resource that a test opened outlives it. */
const runFiles = async (timeoutMs: number, ended: (counts: Counts) => void) => {
  const titles: string[] = []
  const counts: Counts = { passed: 0, failed: 0, skipped: 0, empty: [], cpuSeconds: undefined }
  const fail = (text: string) => {
    counts.failed++
    process.stdout.write(text)
  }
  let underWay = 0
  let testsOfFile = 0
  // By the file of the test: those of a shared suite have another one, and the events of files may overlap.
  const filesWithTests = new Set<string | undefined>()
  const hasTests = (name: string) => [...filesWithTests].some((file) => file?.endsWith(name))
  let linger: NodeJS.Timeout | undefined
  const stillOpen = () => {
    const open = [...new Set(process.getActiveResourcesInfo())].join(', ')
    fail(`\nFAILED  the tests ended, but their resources did not: ${open}\n`)
    ended(counts)
  }
  for await (const { type, data } of run({ files: [group], isolation: 'none', timeout: timeoutMs })) {
    if (type === 'test:dequeue') {
      underWay++
      clearTimeout(linger)
    } else if (type === 'test:complete' && --underWay === 0) linger = setTimeout(stillOpen, lingerMs).unref()
    else if (type === 'test:start') {
      titles[data.nesting] = data.name
      if (isFile(data)) testsOfFile = 0
    } else if (type === 'test:pass') {
      if (data.details.type !== 'suite') counts[data.skip === undefined ? 'passed' : 'skipped']++
      if (data.details.type !== 'suite') {
        testsOfFile++
        filesWithTests.add(data.file)
      } else if (isFile(data) && testsOfFile === 0 && !hasTests(data.name)) counts.empty.push(data.name)
    } else if (type === 'test:fail') {
      const name = [...titles.slice(1, data.nesting), data.name].join(' > ')
      const { error } = data.details
      if (hasStory(error)) fail(failureText(name, `${short(data.file)}:${data.line ?? ''}`, error))
    } else if (type === 'test:diagnostic') {
      if (/asynchronous activity after the test ended/.test(data.message)) fail(`\nFAILED  ${data.message}\n`)
      else process.stdout.write(`${data.message}\n`)
    }
  }
  clearTimeout(linger)
  ended(counts)
}

if (import.meta.main) {
  const timeoutMs = Number(process.argv[2])
  // Exits explicitly, because an open resource would keep the process alive.
  await runFiles(timeoutMs, (counts) =>
    process.send?.({ ...counts, cpuSeconds: cpuSeconds() }, () => process.exit()),
  )
}
