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
})
