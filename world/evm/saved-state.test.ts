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
const stateOf = (blocks: Block[], transactions: { block_number: number }[] = []) =>
  JSON.stringify({ best_block_number: blocks.length - 1, blocks, transactions })

const openFolder = async (t: TestContext, retainedBlocks = 1_000) => {
  const dir = await mkdtemp(join(tmpdir(), 'portico-state-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  const files = savedState(dir, '1', retainedBlocks)
  const save = (state: string) => files.write((path) => writeFile(path, gzipSync(state)))
  const load = async () => {
    const path = await files.prepare()
    if (path === undefined) return undefined
    return JSON.parse(await readFile(path, 'utf8')) as {
      best_block_number: number
      blocks: Block[]
      transactions: { block_number: number }[]
    }
  }
  return { dir, files, save, load }
}

test('a chain without a save starts empty, whatever files its node left', async (t) => {
  const { dir, files, load } = await openFolder(t)
  await writeFile(files.exit, stateOf([block(0)]))
  assert.equal(await load(), undefined)
  assert.deepEqual(await readdir(dir), [])
})

test('the file that the node writes when it ends is newer than the last save and replaces it', async (t) => {
  const { dir, files, save, load } = await openFolder(t)
  await save(stateOf([block(0)]))
  await writeFile(files.exit, stateOf([block(0), block(1)]))
  for (const _again of [1, 2]) assert.equal((await load())?.best_block_number, 1)
  await files.removeLoaded()
  assert.deepEqual(await readdir(dir), ['1.state.gz'])
})

test('an incomplete file of the node is set aside and not removed; an older one is ignored', async (t) => {
  const { dir, files, save, load } = await openFolder(t)
  await save(stateOf([block(0), block(1)]))
  await writeFile(files.exit, stateOf([block(0)]))
  await utimes(files.exit, 5, 5)
  assert.equal((await load())?.best_block_number, 1)
  await files.removeLoaded()
  assert.deepEqual(await readdir(dir), ['1.state.gz'])
  await writeFile(files.exit, '{"best_block_number":7,"blo')
  await utimes(files.exit, Date.now() / 1000 + 5, Date.now() / 1000 + 5)
  assert.equal((await load())?.best_block_number, 1)
  await files.removeLoaded()
  assert.deepEqual((await readdir(dir)).sort(), ['1.exit.unreadable.json', '1.state.gz'])
})

test('a saved state that cannot be read is rejected by name and not removed', async (t) => {
  const { dir, files, load } = await openFolder(t)
  const content = gzipSync(stateOf([block(0)])).subarray(0, 40)
  await files.write((path) => writeFile(path, content))
  await assert.rejects(load(), /1\.state\.gz cannot be read .*restore it, or move it away/)
  assert.deepEqual(await readFile(join(dir, '1.state.gz')), content)
})

test('of two concurrent saves the later one remains, complete, and the draft of a killed process is removed', async (t) => {
  const { dir, files, load } = await openFolder(t)
  const [first, second] = [gzipSync(stateOf([block(0)])), gzipSync(stateOf([block(0), block(1)]))]
  const inHalves = (content: Buffer) => async (path: string) => {
    await writeFile(path, content.subarray(0, 20))
    await new Promise((resolve) => setImmediate(resolve))
    await writeFile(path, content.subarray(20), { flag: 'a' })
  }
  await Promise.all([files.write(inHalves(first)), files.write(inHalves(second))])
  await writeFile(join(dir, '1.state.gz.99-1.draft'), 'torn')
  assert.equal((await load())?.best_block_number, 1)
  assert.deepEqual((await readdir(dir)).sort(), ['1.load.json', '1.state.gz'])
})

test('a state of an earlier version is adopted', async (t) => {
  const { dir, load } = await openFolder(t)
  await writeFile(join(dir, '1.saved.json'), stateOf([block(0), block(1), block(2)]))
  assert.equal((await load())?.best_block_number, 2)
  assert.deepEqual((await readdir(dir)).sort(), ['1.load.json', '1.state.gz'])
})

test('history is bounded: old transactions are dropped with their blocks, and empty blocks earlier', async (t) => {
  const { save, load } = await openFolder(t, 1_000)
  const blocks = Array.from({ length: 4_000 }, (_, number) =>
    number % 100 === 1 ? block(number, 'transaction') : block(number),
  )
  const mined = blocks.flatMap(({ transactions }, number) =>
    transactions.map(() => ({ block_number: number })),
  )
  await save(stateOf(blocks, mined))
  const state = await load()
  assert.ok(state)
  const numbers = new Set(state.blocks.map(({ header }) => Number(header.number)))
  for (const retained of [0, 3_001, 3_101, 3_800, 3_999])
    assert.ok(numbers.has(retained), `block ${retained}`)
  for (const removed of [1, 2_901, 3_002, 3_700]) assert.ok(!numbers.has(removed), `block ${removed}`)
  assert.deepEqual(
    state.transactions.map((each) => each.block_number),
    Array.from({ length: 10 }, (_, index) => 3_001 + index * 100),
  )
})
