/** The local model, judged by OpenAI's own client. */
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import OpenAI from 'openai'
import type { ChatCompletionMessageParam, ChatCompletionTool } from 'openai/resources/chat/completions'
import { type ModelWorld, openModelWorld, text, tools } from '../../test/harness/model-world.ts'

let world: ModelWorld
let client: OpenAI
before(async () => {
  world = await openModelWorld()
  client = new OpenAI({ baseURL: world.url, apiKey: 'any', maxRetries: 0 })
})
afterEach(() => world.reset())
after(() => world?.[Symbol.asyncDispose]())

const ask: ChatCompletionMessageParam[] = [{ role: 'user', content: 'What do I hold?' }]
const priceTool: ChatCompletionTool = {
  type: 'function',
  function: {
    name: 'price',
    description: 'The price of a token',
    parameters: { type: 'object', properties: { symbol: { type: 'string' } }, required: ['symbol'] },
  },
}
const twoCalls = [
  { name: 'price', arguments: { symbol: 'ETH' } },
  { name: 'price', arguments: { symbol: 'Bitcoin, "digital gold" – ₿' } },
]

/** Everything that the client makes of a stream, and the completion that its helper assembles. */
async function stream(model: string, more: object = {}) {
  const options = { model, messages: ask, stream_options: { include_usage: true }, ...more }
  const found = client.chat.completions.stream(options)
  const chunks: OpenAI.ChatCompletionChunk[] = []
  for await (const chunk of found) chunks.push(chunk)
  return { chunks, completion: await found.finalChatCompletion() }
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
const create = (model: string, more: object = {}) =>
  client.chat.completions.create({ model, messages: ask, ...more })

test('the models are listed and found by their id', async () => {
  const model = await world.script([[text('Hello')]])
  const listed = (await client.models.list()).data.map(({ id }) => id)
  assert.deepEqual(listed, ['local', model])
  assert.equal((await client.models.retrieve(model)).id, model)
  await errorOf(OpenAI.NotFoundError, () => client.models.retrieve('gpt-unknown'))
})

test('a text comes whole, or in pieces of a few characters, with its tokens', async () => {
  const words = 'You hold 1.5 ETH – about $5,250 🎉.'
  const model = await world.script([[text(words)]])
  const whole = await create(model)
  assert.equal(whole.choices[0]!.message.content, words)
  assert.equal(whole.choices[0]!.finish_reason, 'stop')
  assert.ok(whole.usage!.prompt_tokens > 0 && whole.usage!.completion_tokens > 0)

  const { chunks, completion } = await stream(model)
  assert.equal(completion.choices[0]!.message.content, words)
  assert.ok(chunks.length > 5)
  assert.deepEqual(chunks.at(-1)!.choices, [])
  assert.equal(chunks.at(-1)!.usage!.total_tokens, whole.usage!.total_tokens)
  const reasons = chunks.flatMap(({ choices }) => choices.map((choice) => choice.finish_reason))
  assert.deepEqual(
    reasons.filter((reason) => reason !== null),
    ['stop'],
  )
})

test('without stream_options no chunk has a usage', async () => {
  const model = await world.script([[text('Hello')]])
  const { chunks } = await stream(model, { stream_options: undefined })
  assert.ok(chunks.every(({ usage, choices }) => usage === undefined && choices.length === 1))
})

for (const interleave of [false, true])
  test(`parallel calls ${interleave ? 'in turns' : 'one after another'} are assembled from pieces`, async () => {
    const model = await world.script([[text('I look.'), tools(twoCalls, { interleave, piece: 3 })]])
    const { chunks, completion } = await stream(model, { tools: [priceTool] })
    const { message, finish_reason: reason } = completion.choices[0]!
    assert.equal(reason, 'tool_calls')
    assert.equal(message.content, 'I look.')
    const calls = message.tool_calls!.map((call) => call.type === 'function' && call.function)
    assert.deepEqual(
      calls,
      twoCalls.map(({ name, arguments: input }) => ({ name, arguments: JSON.stringify(input) })),
    )
    const indexes = chunks
      .flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])
      .map(({ index }) => index)
    const changes = indexes.filter((index, at) => at > 0 && index !== indexes[at - 1]).length
    assert.ok(interleave ? changes > 2 : changes === 1, `${changes} changes of the index`)
  })

test('calls without a stream are whole, and the next turn needs the results of all of them', async () => {
  const model = await world.script([[tools(twoCalls)], [text('ETH costs 3500.')]])
  const { message } = (await create(model, { tools: [priceTool] })).choices[0]!
  assert.equal(message.content, null)
  assert.equal(message.tool_calls!.length, 2)
  const result = (at: number): ChatCompletionMessageParam => ({
    role: 'tool',
    tool_call_id: message.tool_calls![at]!.id,
    content: '3500',
  })
  const early = await errorOf(OpenAI.BadRequestError, () =>
    create(model, { messages: [...ask, message, result(0)] }),
  )
  assert.match(early.message, /must be followed by tool messages/)
  const next = await create(model, { messages: [...ask, message, result(0), result(1)] })
  assert.equal(next.choices[0]!.message.content, 'ETH costs 3500.')
})

test('the runner of the client calls tools until an answer comes', async () => {
  const model = await world.script([
    [tools([twoCalls[0]!])],
    [tools([twoCalls[1]!])],
    [text('Both are dear.')],
  ])
  const asked: string[] = []
  const runner = client.chat.completions.runTools({
    model,
    messages: ask,
    tools: [
      {
        type: 'function',
        function: {
          name: 'price',
          description: 'The price of a token',
          parse: (given: string): { symbol: string } => JSON.parse(given),
          parameters: { type: 'object' },
          function: ({ symbol }: { symbol: string }) => {
            asked.push(symbol)
            return '3500'
          },
        },
      },
    ],
  })
  assert.equal(await runner.finalContent(), 'Both are dear.')
  assert.deepEqual(asked, ['ETH', 'Bitcoin, "digital gold" – ₿'])
})

test('a refusal, a filter and a spent limit have their reasons', async () => {
  const refusal = await world.script([[{ type: 'refusal', text: 'I do not do that.' }]])
  const { completion } = await stream(refusal)
  assert.equal(completion.choices[0]!.message.refusal, 'I do not do that.')
  assert.equal(completion.choices[0]!.finish_reason, 'stop')
  const filtered = await world.script([[text('So '), { type: 'stop', reason: 'refusal' }]])
  assert.equal((await create(filtered)).choices[0]!.finish_reason, 'content_filter')
  const short = await world.script([[text('So '), { type: 'stop', reason: 'length' }]])
  assert.equal((await create(short)).choices[0]!.finish_reason, 'length')
  const pieces = client.chat.completions.stream({ model: short, messages: ask })
  assert.equal((await pieces.finalChatCompletion()).choices[0]!.finish_reason, 'length')
})

test('errors are those of the service: key, model, body and limits', async () => {
  await world.control('PUT', '/model/settings', { keys: ['right'] })
  const key = await errorOf(OpenAI.AuthenticationError, () => create('local'))
  assert.equal(key.code, 'invalid_api_key')
  await world.reset()
  const model = await errorOf(OpenAI.NotFoundError, () => create('gpt-unknown'))
  assert.equal(model.code, 'model_not_found')
  const body = await errorOf(OpenAI.BadRequestError, () => create('local', { messages: [] }))
  assert.equal(body.param, 'messages')
  await world.control('PUT', '/model/settings', { rejected_parameters: ['temperature'] })
  const field = await errorOf(OpenAI.BadRequestError, () => create('local', { temperature: 0 }))
  assert.deepEqual([field.param, field.code], ['temperature', 'unsupported_parameter'])

  const limited = await world.script([[{ type: 'fail', status: 429, retry_after_seconds: 1 }, text('Now')]])
  const limit = await errorOf(OpenAI.RateLimitError, () => create(limited))
  assert.equal(limit.headers.get('retry-after'), '1')
  assert.equal(limit.code, 'rate_limit_exceeded')
  assert.equal((await create(limited)).choices[0]!.message.content, 'Now')
  const failing = await world.script([
    [
      { type: 'fail', status: 500 },
      { type: 'fail', status: 503 },
    ],
  ])
  await errorOf(OpenAI.InternalServerError, () => create(failing))
  await errorOf(OpenAI.InternalServerError, () => create(failing))
})

test('the client retries by itself what the script refuses at first', async () => {
  const model = await world.script([
    [{ type: 'fail', status: 429, times: 2, retry_after_seconds: 0 }, text('At last')],
  ])
  const retrying = new OpenAI({ baseURL: world.url, apiKey: 'any', maxRetries: 2 })
  const { choices } = await retrying.chat.completions.create({ model, messages: ask })
  assert.equal(choices[0]!.message.content, 'At last')
  assert.equal((await world.requests()).length, 3)
})

test('lines that are split, end otherwise or stand between comments are the same answer', async () => {
  const words = 'Grüße – 価格 🎉'
  for (const wire of [{ split_bytes: 1 }, { line_end: 'crlf' }, { comments: true }]) {
    const model = await world.script([[{ type: 'wire', ...wire }, text(words), { type: 'empty' }]])
    const { completion } = await stream(model)
    assert.equal(completion.choices[0]!.message.content, words, JSON.stringify(wire))
  }
})

test('an error within the answer, and a reset connection, are errors of the client', async () => {
  const broken = await world.script([[text('So '), { type: 'error', status: 500, message: 'It broke' }]])
  const error = await errorOf(OpenAI.APIError, () => stream(broken))
  assert.match(error.message, /It broke/)
  const torn = await world.script([[text('So '), { type: 'reset' }]])
  await errorOf(Error, () => stream(torn))
})

test('a client that waits too little for the first token gives up', async () => {
  const model = await world.script([[{ type: 'delay', ms: 60_000 }, text('Late')]])
  await errorOf(OpenAI.APIConnectionTimeoutError, () =>
    client.chat.completions.create({ model, messages: ask }, { timeout: 200 }),
  )
})

test('without a script the last result is reported, and a tool that the question names is called', async () => {
  const called = await create('local', {
    messages: [{ role: 'user', content: 'What are my holdings?' }],
    tools: [{ type: 'function', function: { name: 'holdings', parameters: { type: 'object' } } }],
  })
  const { message } = called.choices[0]!
  const call = message.tool_calls![0]!
  assert.deepEqual(call.type === 'function' && call.function, { name: 'holdings', arguments: '{}' })
  const answered = await create('local', {
    messages: [
      ...ask,
      message,
      { role: 'tool', tool_call_id: call.id, content: '{"total_usd":"5250.5","chains":["8453"]}' },
    ],
  })
  assert.equal(
    answered.choices[0]!.message.content,
    'Result of holdings:\n- total_usd: 5250.5\n- chains: ["8453"]',
  )
  assert.match((await create('local')).choices[0]!.message.content!, /stand-in model/)
})

test('a script answers conversations that contain its words, and continues a text that has begun', async () => {
  await world.script([[text('A reply of two parts.')]], { contains: 'two PARTS' })
  const question: ChatCompletionMessageParam = { role: 'user', content: 'Answer in two parts, please.' }
  const whole = await create('local', { messages: [question] })
  assert.equal(whole.choices[0]!.message.content, 'A reply of two parts.')
  const rest = await create('local', { messages: [question, { role: 'assistant', content: 'A reply of' }] })
  assert.equal(rest.choices[0]!.message.content, ' two parts.')
})
