import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { savedState } from './saved-state.ts'

type Block = { header: { number: string }; transactions: string[] }
const block = (number: number, ...transactions: string[]): Block => ({
  header: { number: `0x${number.toString(16)}` },
  transactions,
})
const stateOf = (blocks: Block[]) => JSON.stringify({ best_block_number: blocks.length - 1, blocks })

const place = async (t: TestContext) => {
  const dir = await mkdtemp(join(tmpdir(), 'portico-state-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  const files = savedState(dir, '1')
  const save = (state: string) => files.write(`0x${gzipSync(state).toString('hex')}`)
  return { dir, files, save, saved: join(dir, '1.saved.json') }
}

test('a chain that was never saved is made anew, whatever its node left behind', async (t) => {
  const { dir, files } = await place(t)
  await writeFile(files.exit, stateOf([block(0)]))
  assert.equal(await files.newest(), undefined)
  assert.deepEqual(await readdir(dir), [])
})

test('what the node wrote while ending is newer than the last save', async (t) => {
  const { files, save, saved } = await place(t)
  await save(stateOf([block(0)]))
  await writeFile(files.exit, stateOf([block(0), block(1)]))
  assert.equal(await files.newest(), saved)
  assert.equal(JSON.parse(await readFile(saved, 'utf8')).best_block_number, 1)
})

test('a torn or an older file of the node is thrown away', async (t) => {
  const { dir, files, save, saved } = await place(t)
  for (const [content, at] of [
    ['{"best_block_number":7,"blo', Date.now() / 1000 + 5],
    [stateOf([block(0)]), 5],
  ] as const) {
    await save(stateOf([block(0), block(1)]))
    await writeFile(files.exit, content)
    await utimes(files.exit, at, at)
    assert.equal(await files.newest(), saved)
    assert.equal(JSON.parse(await readFile(saved, 'utf8')).best_block_number, 1)
    assert.deepEqual(await readdir(dir), ['1.saved.json'])
  }
})

test('a long history forgets old empty blocks and no transaction', async (t) => {
  const { files, save, saved } = await place(t)
  const blocks = Array.from({ length: 4_000 }, (_, number) =>
    number === 17
      ? block(number, 'kept')
      : block(number, ...(number % 100 === 1 ? ['x'.repeat(250_000)] : [])),
  )
  await save(stateOf(blocks))
  await files.compact()
  const left = (JSON.parse(await readFile(saved, 'utf8')) as { blocks: Block[] }).blocks
  assert.ok(left.length < 400, `${left.length} blocks are left`)
  for (const number of [0, 1, 17, 101, 3_999])
    assert.ok(left.some(({ header }) => Number(header.number) === number))
  assert.equal(
    left.some(({ header }) => Number(header.number) === 18),
    false,
  )
})
