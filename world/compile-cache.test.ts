import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { prepareCompileCache } from './compile-cache.ts'

test('compiled code is cached only in a folder that no other account can write', {
  skip: process.platform === 'win32',
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'portico-cache-'))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  const cache = join(dir, 'compile-cache')
  assert.equal(await prepareCompileCache(dir), cache)
  assert.equal(statSync(cache).mode & 0o777, 0o700)
  chmodSync(cache, 0o770)
  assert.equal(await prepareCompileCache(dir), undefined, 'others may write it')
  rmSync(cache, { recursive: true })
  mkdirSync(join(dir, 'elsewhere'), { mode: 0o700 })
  symlinkSync(join(dir, 'elsewhere'), cache)
  assert.equal(await prepareCompileCache(dir), undefined, 'it is a link')
  rmSync(cache)
  chmodSync(dir, 0o777)
  assert.equal(await prepareCompileCache(dir), undefined, 'others may replace it')
})
