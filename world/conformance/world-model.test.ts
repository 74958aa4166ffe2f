/** The control calls and the bounds of the local model. */
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { http } from '../../test/harness/gateway.ts'
import { type ModelWorld, openModelWorld, text, tools } from '../../test/harness/model-world.ts'

let world: ModelWorld
let controlUrl: string
before(async () => {
  world = await openModelWorld()
  controlUrl = (await world.control<{ urls: { control: string } }>('GET', '/')).urls.control
})
afterEach(() => world.reset())
after(() => world?.[Symbol.asyncDispose]())

const put = (script: object) =>
  http<{ detail?: string }>(`${controlUrl}/model/scripts`, { method: 'PUT', body: script })
const complete = (body: object) =>
  http<{ error?: { code: string; message: string }; choices: { message: { content: string } }[] }>(
    `${world.url}/chat/completions`,
    { method: 'POST', body },
  )
const ask = (content: string) => ({ model: 'local', messages: [{ role: 'user', content }] })

test('scripts are registered, listed, replaced and removed', async () => {
  await world.control('PUT', '/model/scripts', { name: 'a', turns: [[text('one')]] })
  const replaced = { name: 'a', turns: [[text('two')], [text('three')]], contains: 'x' }
  const listed = await world.control('PUT', '/model/scripts', replaced)
  assert.deepEqual(listed, {
    models: ['local', 'local-a'],
    scripts: [{ name: 'a', model: 'local-a', contains: 'x', turns: 2, repeat: false }],
  })
  assert.equal((await complete(ask('x'))).body.choices[0]!.message.content, 'two')
  const left = await world.control<{ models: string[] }>('DELETE', '/model/scripts?name=a')
  assert.deepEqual(left.models, ['local'])
})

test('a script that is misspelt or too large is rejected with the reason', async () => {
  const rejected: [object, RegExp][] = [
    [{ name: 'A b', turns: [] }, /^name must be of small letters/],
    [{ name: 'a', turns: {} }, /^turns must be a list of at most 100/],
    [{ name: 'a', turns: [], pace: 1 }, /^pace is not a field here/],
    [{ name: 'a', turns: [[{ type: 'txt' }]] }, /^type must be one of text/],
    [{ name: 'a', turns: [[{ type: 'text' }]] }, /^text must be text/],
    [{ name: 'a', turns: [[{ type: 'text', text: 'x', speed: 1 }]] }, /^speed is not a field/],
    [{ name: 'a', turns: [[{ type: 'stop', reason: 'bored' }]] }, /^reason must be one of end/],
    [{ name: 'a', turns: [[{ type: 'fail', status: 200 }]] }, /^status must be/],
    [{ name: 'a', turns: [[{ type: 'pause', ms: 1e9 }]] }, /^ms must be a number/],
    [{ name: 'a', turns: [[tools([{ arguments: {} }])]] }, /^name must be text/],
    [{ name: 'a', turns: [[text('x'.repeat(300_001))]] }, /^text must be text of at most 300000/],
    [{ name: 'a', turns: [Array.from({ length: 7 }, () => text('x'.repeat(300_000)))] }, /at most 2000000/],
  ]
  for (const [script, reason] of rejected) {
    const { status, body } = await put(script)
    assert.equal(status, 400, JSON.stringify(script).slice(0, 100))
    assert.match(body.detail!, reason)
  }
})

test('scripts are bounded in number and together in characters', async () => {
  const large = [Array.from({ length: 6 }, () => text('x'.repeat(300_000)))]
  for (let at = 0; at < 11; at++) assert.equal((await put({ name: `large-${at}`, turns: large })).status, 200)
  const sum = await put({ name: 'large-11', turns: large })
  assert.deepEqual(
    [sum.status, sum.body.detail],
    [400, 'All scripts together have at most 20000000 characters.'],
  )
  await world.reset()
  for (let at = 0; at < 200; at++) await put({ name: `s-${at}`, turns: [] })
  const last = await put({ name: 's-200', turns: [] })
  assert.deepEqual([last.status, last.body.detail], [400, 'There are at most 200 scripts.'])
})

test('turns are counted from the last message of the user, or from the start, and may repeat', async () => {
  const turns = [[text('first')], [text('second')]]
  const history = [
    { role: 'user', content: 'one' },
    { role: 'assistant', content: 'said' },
    { role: 'user', content: 'two' },
  ]
  const answer = async (model: string, messages: object[]) =>
    (await complete({ model, messages })).body.choices[0]!.message.content
  assert.equal(await answer(await world.script(turns), history), 'first')
  const fromStart = await world.script(turns, { turns_from: 'start' })
  assert.equal(await answer(fromStart, history), 'second')
  const longer = [...history, { role: 'assistant', content: 'said' }, { role: 'user', content: 'three' }]
  assert.match(await answer(fromStart, longer), /stand-in/)
  assert.equal(
    await answer(await world.script(turns, { turns_from: 'start', repeat: true }), longer),
    'first',
  )
})

test('the last hundred requests are recorded, without the key, and large ones as their size', async () => {
  await complete({ ...ask('hello'), user: 'someone' })
  await complete(ask('x'.repeat(70_000)))
  const [small, large] = await world.requests()
  assert.deepEqual(small, { ...ask('hello'), user: 'someone' })
  assert.ok(Number(large!.omitted_characters) > 70_000)
  for (let at = 0; at < 101; at++) await complete(ask(`question ${at}`))
  const all = await world.requests()
  assert.equal(all.length, 100)
  assert.deepEqual(all.at(-1), ask('question 100'))
})

test('a body that is too large, no JSON or no object is rejected', async () => {
  const large = await complete(ask('x'.repeat(4_100_000)))
  assert.equal(large.status, 413)
  for (const body of ['{', '[]', '"x"'])
    assert.equal((await fetch(`${world.url}/chat/completions`, { method: 'POST', body })).status, 400)
  assert.equal((await fetch(`${world.url}/other`)).status, 404)
})

test('the dial of faults applies before the scripts', async () => {
  await world.control('PUT', '/faults', { target: 'model', status: 502, html: true, count: 1 })
  const page = await fetch(`${world.url}/models`)
  assert.deepEqual([page.status, page.headers.get('content-type')], [502, 'text/html'])
  assert.equal((await fetch(`${world.url}/models`)).status, 200)
})
