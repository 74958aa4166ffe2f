import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const pathOf = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

/** Runs a launcher as if this Node were another one, with the given programs in reach. */
const launchOn = (
  version: string,
  { launcher = pathOf('./launch.cjs'), arch = process.arch, path = '' } = {},
) => {
  const code = `Object.defineProperty(process, 'versions', { value: { node: '${version}' } })
Object.defineProperty(process, 'version', { value: 'v${version}' })
Object.defineProperty(process, 'arch', { value: '${arch}' })
require(${JSON.stringify(launcher)})`
  const env = path === '' ? {} : { env: { PATH: path } }
  return spawnSync(process.execPath, ['-e', code], { encoding: 'utf8', ...env })
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

test('where npm cannot provide a Node, the launcher says which one to install', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'portico-launch-'))
  const launcher = join(folder.path, 'scripts/with-node.cjs')
  mkdirSync(join(folder.path, 'scripts'))
  cpSync(pathOf('../../../scripts/with-node.cjs'), launcher)
  const { platform, arch } = process
  const name = `node-${platform === 'win32' ? 'win' : platform}-${arch}`
  const manifest = { optionalDependencies: { [name]: '24.0.0' } }
  writeFileSync(join(folder.path, 'package.json'), JSON.stringify(manifest))
  const install = 'Install Node 24 or later: https://nodejs.org\n'
  const withoutNpm = launchOn('22.19.0', { launcher, path: folder.path })
  assert.equal(
    withoutNpm.stderr,
    `Portico needs Node 24 or later, and this is v22.19.0: npm fetches ${name} 24.0.0, and keeps it.
npm could not fetch it. ${install}`,
  )
  const unknown = launchOn('20.19.0', { launcher, arch: 'riscv64' })
  assert.equal(
    unknown.stderr,
    `Portico needs Node 24 or later, and this is v20.19.0. npm has none for ${platform}-riscv64. ${install}`,
  )
  assert.deepEqual(
    [withoutNpm, unknown].map(({ status, stdout }) => [status, stdout]),
    [
      [1, ''],
      [1, ''],
    ],
  )
})
