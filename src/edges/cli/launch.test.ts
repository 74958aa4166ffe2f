import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const launcher = fileURLToPath(new URL('./launch.cjs', import.meta.url))

/** Runs the launcher as if this Node were another one. */
const launchOn = (version: string) => {
  const code = `Object.defineProperty(process, 'versions', { value: { node: '${version}' } })
Object.defineProperty(process, 'version', { value: 'v${version}' })
require(${JSON.stringify(launcher)})`
  return spawnSync(process.execPath, ['-e', code], { encoding: 'utf8' })
}

test('a Node that is too old gets one sentence', () => {
  for (const version of ['12.22.12', '18.20.8', '20.19.5', '22.18.0']) {
    const { status, stdout, stderr } = launchOn(version)
    assert.deepEqual(
      [status, stdout, stderr],
      [1, '', `portico needs Node 22.19 or later, and this is v${version}.\n`],
    )
  }
})

test('a newer Node goes on to the command line', () => {
  // Only the package has a main.js; the folder of the sources has none.
  for (const version of ['22.19.0', '24.0.0']) assert.match(launchOn(version).stderr, /main\.js/)
})
