/** Each test that docs/security-tests.md names exists. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))
const rows = [
  ...readFileSync(`${root}docs/security-tests.md`, 'utf8').matchAll(
    /^\| (S\d+) \| ([^|]+) \| ([^|]+) \| `([^`]+)` \|$/gm,
  ),
].map(([, id, attack, title, file]) => ({ id: id!, attack: attack!, title: title!, file: file! }))

test('each attack of the list names a test of a file that has it', () => {
  assert.ok(rows.length >= 40, `${rows.length} rows`)
  assert.deepEqual([...new Set(rows.map(({ id }) => id))], ['S1', 'S3', 'S4', 'S5', 'S9', 'S25'])
  for (const { id, attack, title, file } of rows) {
    assert.ok(existsSync(root + file), `${id} ${attack}: there is no ${file}`)
    assert.ok(readFileSync(root + file, 'utf8').includes(title), `${id} ${attack}: ${file} has no "${title}"`)
  }
})
