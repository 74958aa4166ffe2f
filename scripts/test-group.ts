/** The root of one process of tests: each file that is named as an argument is a suite with its own hooks. */
import { existsSync } from 'node:fs'
import { describe } from 'node:test'
import { root } from './environment.ts'

const files = process.argv.slice(3)
const shared = `${root}/test/harness/once-per-process.ts`
if (existsSync(shared)) await import(shared)
// A module that awaits at its top level would have the tests of every file that imports it declared in one suite.
for (const file of files)
  describe(file, async () => {
    await import(`${root}/${file}`)
  })
