/** The local model, judged by Anthropic's own client. */
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { http } from '../../test/harness/gateway.ts'
import { type ModelWorld, openModelWorld, text, tools } from '../../test/harness/model-world.ts'

let world: ModelWorld
let client: Anthropic
/** This client adds `/v1` itself. */
const baseURL = () => world.url.replace(/\/v1$/, '')
before(async () => {
  world = await openModelWorld()
  client = new Anthropic({ baseURL: baseURL(), apiKey: 'any', maxRetries: 0 })
})
afterEach(() => world.reset())
after(() => world?.[Symbol.asyncDispose]())

const ask: Anthropic.MessageParam[] = [{ role: 'user', content: 'What do I hold?' }]
const priceTool: Anthropic.Tool = {
  name: 'price',
  description: 'The price of a token',
  input_schema: { type: 'object', properties: { symbol: { type: 'string' } }, required: ['symbol'] },
}
const twoCalls = [
  { name: 'price', arguments: { symbol: 'ETH' } },
  { name: 'price', arguments: { symbol: 'Bitcoin, "digital gold" – ₿' } },
]

const create = (model: string, more: object = {}) =>
  client.messages.create({ model, max_tokens: 500, messages: ask, ...more }) as Promise<Anthropic.Message>
async function stream(model: string, more: object = {}) {
  const found = client.messages.stream({ model, max_tokens: 500, messages: ask, ...more })
  const events: Anthropic.MessageStreamEvent[] = []
  for await (const event of found) events.push(event)
  return { events, message: await found.finalMessage() }
}
async function errorOf<E extends Error>(
  type: new (...given: never[]) => E,
  run: () => Promise<unknown>,
): Promise<E> {
  const error = await run().then(
    () => assert.fail('the client got an answer'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof type, String(error))
  return error
}
const textOf = ({ content }: Anthropic.Message) =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('')
const callsOf = ({ content }: Anthropic.Message) =>
  content.flatMap((block) =>
    block.type === 'tool_use' ? [{ name: block.name, arguments: block.input }] : [],
  )

test('the models are listed and found by their id', async () => {
  const model = await world.script([[text('Hello')]])
  const listed = (await client.models.list()).data.map(({ id }) => id)
  assert.deepEqual(listed, ['local', model])
  assert.equal((await client.models.retrieve(model)).id, model)
})

test('a text comes whole, or as the events of its stream, with its tokens', async () => {
  const words = 'You hold 1.5 ETH – about $5,250 🎉.'
  const model = await world.script([[text(words)]])
  const whole = await create(model)
  assert.equal(textOf(whole), words)
  assert.equal(whole.stop_reason, 'end_turn')

  const { events, message } = await stream(model)
  assert.equal(textOf(message), words)
  assert.deepEqual(message.usage.output_tokens, whole.usage.output_tokens)
  const types = events.map(({ type }) => type).filter((type) => type !== 'content_block_delta')
  assert.deepEqual(types, [
    'message_start',
    'content_block_start',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ])
})

for (const interleave of [false, true])
  test(`parallel calls ${interleave ? 'in turns' : 'one after another'} are assembled from pieces`, async () => {
    const model = await world.script([[text('I look.'), tools(twoCalls, { interleave, piece: 3 })]])
    const { events, message } = await stream(model, { tools: [priceTool] })
    assert.equal(message.stop_reason, 'tool_use')
    assert.equal(textOf(message), 'I look.')
    assert.deepEqual(callsOf(message), twoCalls)
    const pieces = events.filter(
      (event) => event.type === 'content_block_delta' && event.delta.type === 'input_json_delta',
    )
    assert.ok(pieces.length > 10)
    assert.deepEqual(callsOf(await create(model, { tools: [priceTool] })), twoCalls)
  })

test('the next turn needs the results of all calls, and ids that it knows', async () => {
  const model = await world.script([[tools(twoCalls)], [text('ETH costs 3500.')]])
  const { content } = await create(model, { tools: [priceTool] })
  const ids = content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
  const withResults = (answered: string[]) => ({
    tools: [priceTool],
    messages: [
      ...ask,
      { role: 'assistant', content },
      {
        role: 'user',
        content: answered.map((id) => ({ type: 'tool_result', tool_use_id: id, content: '3500' })),
      },
    ],
  })
  const early = await errorOf(Anthropic.BadRequestError, () => create(model, withResults(ids.slice(0, 1))))
  assert.match(early.message, /without `tool_result` blocks/)
  await errorOf(Anthropic.BadRequestError, () => create(model, withResults([...ids, 'toolu_other'])))
  assert.equal(textOf(await create(model, withResults(ids))), 'ETH costs 3500.')
})

test('a refusal and a spent limit have their reasons, and thinking is a block of its own', async () => {
  const refusal = await world.script([[{ type: 'refusal', text: 'I do not do that.' }]])
  const refused = (await stream(refusal)).message
  assert.deepEqual([textOf(refused), refused.stop_reason], ['I do not do that.', 'refusal'])
  const short = await world.script([[text('So '), { type: 'stop', reason: 'length' }]])
  assert.equal((await stream(short)).message.stop_reason, 'max_tokens')
  const thinking = await world.script([[{ type: 'thinking', text: 'What is it?' }, text('It is ETH.')]])
  const { message } = await stream(thinking)
  assert.deepEqual(
    message.content.map(({ type }) => type),
    ['thinking', 'text'],
  )
})

test('errors are those of the service: key, version, model, body and limits', async () => {
  await world.control('PUT', '/model/settings', { keys: ['right'] })
  await errorOf(Anthropic.AuthenticationError, () => create('local'))
  const right = new Anthropic({ baseURL: baseURL(), apiKey: 'right' })
  assert.ok(await right.messages.create({ model: 'local', max_tokens: 5, messages: ask }))
  const direct = (key: string) =>
    fetch(`${world.url}/models`, { headers: { 'x-api-key': key, 'anthropic-version': '2023-06-01' } })
  assert.deepEqual([(await direct('right')).status, (await direct('wrong')).status], [200, 401])
  await world.reset()
  const model = await errorOf(Anthropic.NotFoundError, () => create('claude-unknown'))
  assert.deepEqual((model.error as { error: { type: string } }).error.type, 'not_found_error')
  await errorOf(Anthropic.BadRequestError, () => create('local', { max_tokens: undefined }))
  await errorOf(Anthropic.BadRequestError, () =>
    create('local', { messages: [{ role: 'user', content: [{ type: 'text', text: '' }] }] }),
  )
  const versionless = await http<{ error: { message: string } }>(`${world.url}/messages`, {
    method: 'POST',
    body: { model: 'local', max_tokens: 5, messages: ask },
  })
  assert.deepEqual(
    [versionless.status, versionless.body.error.message],
    [400, 'anthropic-version: header is required'],
  )

  const limited = await world.script([[{ type: 'fail', status: 429, retry_after_seconds: 1 }, text('Now')]])
  const limit = await errorOf(Anthropic.RateLimitError, () => create(limited))
  assert.equal(limit.headers.get('retry-after'), '1')
  assert.equal(textOf(await create(limited)), 'Now')
  const overloaded = await world.script([[{ type: 'fail', status: 529 }]])
  const overload = await errorOf(Anthropic.InternalServerError, () => create(overloaded))
  assert.match(overload.message, /overloaded_error/)
})

test('the client retries by itself what the script refuses at first', async () => {
  const model = await world.script([
    [{ type: 'fail', status: 529, times: 2, retry_after_seconds: 0 }, text('At last')],
  ])
  const retrying = new Anthropic({ baseURL: baseURL(), apiKey: 'any', maxRetries: 2 })
  assert.equal(textOf(await retrying.messages.create({ model, max_tokens: 50, messages: ask })), 'At last')
})

test('lines that are split, end otherwise or stand between comments are the same answer', async () => {
  const words = 'Grüße – 価格 🎉'
  for (const wire of [{ split_bytes: 1 }, { line_end: 'crlf' }, { comments: true }]) {
    const model = await world.script([[{ type: 'wire', ...wire }, text(words), { type: 'empty' }]])
    assert.equal(textOf((await stream(model)).message), words, JSON.stringify(wire))
  }
})

test('an error event within the answer, and a reset connection, are errors of the client', async () => {
  const broken = await world.script([[text('So '), { type: 'error', status: 529, message: 'Overloaded' }]])
  const error = await errorOf(Anthropic.APIError, () => stream(broken))
  assert.match(error.message, /overloaded_error/)
  const torn = await world.script([[text('So '), { type: 'reset' }]])
  await errorOf(Error, () => stream(torn))
})

test('without a script the last result is reported', async () => {
  const known: Anthropic.Tool[] = [
    {
      name: 'price',
      input_schema: {
        type: 'object',
        properties: { symbol: { type: 'string', enum: ['BTC', 'ETH'] } },
        required: ['symbol'],
      },
    },
  ]
  const { content } = await create('local', {
    messages: [{ role: 'user', content: 'Show the price of ETH' }],
    tools: known,
  })
  const block = content[0]!
  assert.ok(block.type === 'tool_use')
  assert.deepEqual([block.name, block.input], ['price', { symbol: 'ETH' }])
  const answered = await create('local', {
    tools: known,
    messages: [
      ...ask,
      { role: 'assistant', content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: block.id, content: '3500' }] },
    ],
  })
  assert.equal(textOf(answered), 'Result of price:\n3500')
})
