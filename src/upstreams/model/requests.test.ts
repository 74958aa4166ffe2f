import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anthropicBody } from './anthropic-request.ts'
import { openAiBody } from './openai-request.ts'
import { rejectedField } from './rejected-fields.ts'
import type { ModelMessage, ModelRequest } from './turn.ts'

const request = (messages: ModelMessage[], more: Partial<ModelRequest> = {}): ModelRequest => ({
  instructions: 'Be brief.',
  messages,
  tools: [{ name: 'price', description: 'The price', inputSchema: { type: 'object' } }],
  ...more,
})
const options = { model: 'm', tokensMax: 100, rejected: new Set<never>() }
const conversation: ModelMessage[] = [
  { role: 'user', text: 'Compare' },
  {
    role: 'assistant',
    text: 'I look.',
    calls: [
      { id: 'a', name: 'price', argumentsText: '{"symbol":"ETH"}' },
      { id: 'b', name: 'price', argumentsText: '{"symbol":' },
    ],
  },
  { role: 'tool', callId: 'a', text: '3500', isError: false },
  { role: 'tool', callId: 'b', text: 'the arguments are no valid JSON', isError: true },
  { role: 'user', text: 'And now?' },
]

test("OpenAI's body has the conversation, with arguments that were no JSON as an empty object", () => {
  const call = (id: string, input: string) => ({
    id,
    type: 'function',
    function: { name: 'price', arguments: input },
  })
  assert.deepEqual(openAiBody(request(conversation), options), {
    model: 'm',
    stream: true,
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Compare' },
      { role: 'assistant', content: 'I look.', tool_calls: [call('a', '{"symbol":"ETH"}'), call('b', '{}')] },
      { role: 'tool', tool_call_id: 'a', content: '3500' },
      { role: 'tool', tool_call_id: 'b', content: 'the arguments are no valid JSON' },
      { role: 'user', content: 'And now?' },
    ],
    tools: [
      {
        type: 'function',
        function: { name: 'price', description: 'The price', parameters: { type: 'object' } },
      },
    ],
    max_tokens: 100,
    temperature: 0,
    stream_options: { include_usage: true },
  })
})

test("Anthropic's body has results and words of the user in one message", () => {
  const call = (id: string, input: object) => ({ type: 'tool_use', id, name: 'price', input })
  assert.deepEqual(anthropicBody(request(conversation), options), {
    model: 'm',
    stream: true,
    max_tokens: 100,
    system: 'Be brief.',
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Compare' }] },
      {
        role: 'assistant',
        content: [{ type: 'text', text: 'I look.' }, call('a', { symbol: 'ETH' }), call('b', {})],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: '3500' },
          {
            type: 'tool_result',
            tool_use_id: 'b',
            content: 'the arguments are no valid JSON',
            is_error: true,
          },
          { type: 'text', text: 'And now?' },
        ],
      },
    ],
    tools: [{ name: 'price', description: 'The price', input_schema: { type: 'object' } }],
    temperature: 0,
  })
})

test('Anthropic gets no empty text, and no white space at the end of a text to continue', () => {
  const messages = (...given: ModelMessage[]) => anthropicBody(request(given), options).messages
  const user: ModelMessage = { role: 'user', text: 'Hi' }
  const said = (text: string): ModelMessage => ({ role: 'assistant', text, calls: [] })
  const hi = { role: 'user', content: [{ type: 'text', text: 'Hi' }] }
  assert.deepEqual(messages(user, said(''), user), [
    { role: 'user', content: [...hi.content, ...hi.content] },
  ])
  assert.deepEqual(messages(user, said('So \n')), [
    hi,
    { role: 'assistant', content: [{ type: 'text', text: 'So' }] },
  ])
  assert.deepEqual(messages(user, said(' \n')), [hi])
})

test('without instructions and tools neither is named', () => {
  const bare = request([{ role: 'user', text: 'Hi' }], { instructions: '', tools: [] })
  assert.deepEqual(Object.keys(openAiBody(bare, options)), [
    'model',
    'stream',
    'messages',
    'max_tokens',
    'temperature',
    'stream_options',
  ])
  assert.deepEqual(Object.keys(anthropicBody(bare, options)), [
    'model',
    'stream',
    'max_tokens',
    'messages',
    'temperature',
  ])
})

test('fields that the model refuses are left out, and the limit takes its other name', () => {
  const rejected = new Set(['max_tokens', 'temperature', 'stream_options'] as const)
  const body = openAiBody(request([]), { ...options, rejected })
  assert.deepEqual(
    [body.max_tokens, body.max_completion_tokens, body.temperature, body.stream_options],
    [undefined, 100, undefined, undefined],
  )
  assert.equal(anthropicBody(request([]), { ...options, rejected }).temperature, undefined)
})

test('the refused field is the one that the error is about', () => {
  const fieldOf = (error: object | string, status = 400) =>
    rejectedField(status, typeof error === 'string' ? error : JSON.stringify({ error }))
  assert.equal(
    fieldOf({ param: 'temperature', code: 'unsupported_value', message: 'max_tokens' }),
    'temperature',
  )
  assert.equal(fieldOf({ message: "Unsupported parameter: 'max_tokens'" }), 'max_tokens')
  assert.equal(fieldOf({ message: '`temperature` is deprecated for this model.' }, 422), 'temperature')
  assert.equal(fieldOf({ message: 'messages.1: the temperatures are wrong' }), undefined)
  assert.equal(fieldOf({ message: 'no such thing' }), undefined)
  assert.equal(fieldOf({ param: 'temperature', code: 'unsupported_value' }, 500), undefined)
  assert.equal(fieldOf({ param: 'max_tokens', message: 'max_tokens is too large: 9000' }), undefined)
  assert.equal(fieldOf({ message: "Use 'max_completion_tokens' instead of 'max_tokens'" }), 'max_tokens')
  assert.equal(fieldOf('<html>'), undefined)
  assert.equal(fieldOf({ message: 'tool_choice is not supported here' }), 'tool_choice')
  assert.equal(fieldOf({ message: 'temperature: only 1 is allowed for this model' }), 'temperature')
  assert.equal(
    fieldOf({ message: "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum" }),
    undefined,
  )
})

test('a refusal is read in the forms of validating servers, of relays, and without an object around it', () => {
  const fieldOf = (body: object, status = 400) => rejectedField(status, JSON.stringify(body))
  const extra = {
    type: 'extra_forbidden',
    loc: ['body', 'stream_options'],
    msg: 'Extra inputs are not permitted',
  }
  assert.equal(fieldOf({ detail: [extra] }, 422), 'stream_options')
  assert.equal(fieldOf({ object: 'error', message: { detail: [extra] } }, 422), 'stream_options')
  assert.equal(
    fieldOf({ object: 'error', message: 'temperature is not supported', code: 400 }),
    'temperature',
  )
  assert.equal(fieldOf({ error: 'unknown field: stream_options' }), 'stream_options')
  const raw = JSON.stringify({ error: { message: "Unsupported parameter: 'max_tokens'" } })
  assert.equal(
    fieldOf({ error: { message: 'Provider returned error', code: 400, metadata: { raw } } }),
    'max_tokens',
  )
  for (const message of [
    'This model does not support assistant message prefill.',
    'Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant',
  ])
    assert.equal(fieldOf({ error: { message } }), 'prefix')
})

test('a conversation has names that tools can have, sides that take turns, and no call where none is wanted', () => {
  const messages: ModelMessage[] = [
    { role: 'user', text: 'A' },
    { role: 'user', text: 'B' },
    { role: 'assistant', text: '', calls: [{ id: 'a', name: 'functions.price now', argumentsText: '{}' }] },
    { role: 'tool', callId: 'a', text: '{}', isError: true },
    { role: 'assistant', text: 'So far', calls: [] },
  ]
  const rejected = new Set(['prefix', 'tool_choice'] as const)
  const bodyOf = (body: object) =>
    body as { messages: { role: string; content: unknown; tool_calls?: object[] }[]; tool_choice?: unknown }
  const asked = request(messages, { isTextOnly: true })
  const openAi = bodyOf(openAiBody(asked, options))
  assert.deepEqual(
    openAi.messages.map(({ role }) => role),
    ['system', 'user', 'assistant', 'tool', 'assistant'],
  )
  assert.equal(openAi.messages[1]!.content, 'A\n\nB')
  assert.match(JSON.stringify(openAi.messages[2]!.tool_calls), /"functions_price_now"/)
  assert.equal(openAi.tool_choice, 'none')
  const anthropic = bodyOf(anthropicBody(asked, options))
  assert.match(JSON.stringify(anthropic.messages), /"functions_price_now"/)
  assert.deepEqual(anthropic.tool_choice, { type: 'none' })
  for (const body of [openAiBody, anthropicBody]) {
    const { messages: sent, tool_choice } = bodyOf(body(asked, { ...options, rejected }))
    assert.equal(tool_choice, undefined)
    assert.equal(sent.at(-1)!.role, 'user')
    assert.match(JSON.stringify(sent.at(-1)), /was cut off/)
  }
})
