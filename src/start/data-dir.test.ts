import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { compileCacheOf } from './compile-cache.ts'
import { openDataDir } from './data-dir.ts'

const windows = process.platform === 'win32'
const modeOf = (path: string) => statSync(path).mode & 0o777
const folder = (t: TestContext) => {
  const path = mkdtempSync(join(tmpdir(), 'portico-data-dir-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

test('a new data folder and its compile cache are closed to other accounts', { skip: windows }, (t) => {
  const path = join(folder(t), 'a/b')
  openDataDir(path)
  assert.equal(modeOf(path) & 0o066, 0)
  const cache = compileCacheOf(path)
  assert.equal(cache, join(path, 'compile-cache'))
  assert.equal(modeOf(cache), 0o700)
})

test('a data folder that others may read or write is closed at the next start', { skip: windows }, (t) => {
  const path = folder(t)
  chmodSync(path, 0o777)
  openDataDir(path)
  assert.equal(modeOf(path) & 0o066, 0)
})

test('a compile cache that others may write, or that is a link, is not used', { skip: windows }, (t) => {
  const open = folder(t)
  mkdirSync(join(open, 'compile-cache'))
  chmodSync(join(open, 'compile-cache'), 0o777)
  assert.equal(compileCacheOf(open), undefined)
  const linked = folder(t)
  symlinkSync(open, join(linked, 'compile-cache'))
  assert.equal(compileCacheOf(linked), undefined)
})

test('a data folder of another account is rejected', { skip: windows || process.getuid?.() === 0 }, () => {
  assert.throws(() => openDataDir('/'), /belongs to another account/)
})
