import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { uncaughtExitCode } from './uncaught.ts'

const run = (failure: string) => {
  const script = `
    import { logger } from ${JSON.stringify(new URL('logger.ts', import.meta.url))}
    import { exitOnUncaught } from ${JSON.stringify(new URL('uncaught.ts', import.meta.url))}
    exitOnUncaught(logger('info'))
    setTimeout(() => process.stdout.write('went on'), 500)
    ${failure}`
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module-typescript', '--eval', script],
    { encoding: 'utf8' },
  )
  return { status, stdout, line: JSON.parse(stderr.trim()) as Record<string, unknown> }
}

for (const [what, failure, origin] of [
  [
    'an exception in a listener of an event',
    "const target = new EventTarget(); target.addEventListener('x', () => { throw new Error('foreign') }); target.dispatchEvent(new Event('x'))",
    'uncaughtException',
  ],
  ['a rejection that nobody handles', "void Promise.reject(new Error('foreign'))", 'unhandledRejection'],
] as const)
  test(`${what} is logged in one line and ends the process with a code of its own`, () => {
    const { status, stdout, line } = run(failure)
    assert.deepEqual([status, stdout], [uncaughtExitCode, ''])
    assert.equal(line.origin, origin)
    assert.equal((line.error as { message: string }).message, 'foreign')
    assert.equal(line.msg, 'uncaught exception: the process exits')
  })
