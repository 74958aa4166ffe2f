/** Our client of language models over the local one, in both interfaces and with every fault of its scripts. */
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { openModel } from '#agent/chat-models.ts'
import { readConfig } from '#config.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { systemRandom } from '#kernel/id.ts'
import type { NetRequest, StreamingNet } from '#kernel/wire/upstream-http.ts'
import { createHttpClient, type MeasuredNet } from '#upstreams/http-client.ts'
import { createModelEndpoint, type ModelApi } from '#upstreams/model/model.ts'
import type { ModelEvent, ModelLimits, ModelMessage, ModelRequest } from '#upstreams/model/turn.ts'
import { type ModelWorld, openModelWorld, text, tools } from '../harness/model-world.ts'

let world: ModelWorld
let net: MeasuredNet
before(async () => {
  world = await openModelWorld()
  net = createHttpClient({ failpoints: noFailpoints, labels: { [new URL(world.url).origin]: 'model' } })
})
afterEach(() => world.reset())
after(async () => {
  await net?.[Symbol.asyncDispose]()
  await world?.[Symbol.asyncDispose]()
})

const key = 'sk-canary-0123456789abcdef'
const limits: ModelLimits = {
  tokensMax: 500,
  firstTokenMs: 5_000,
  idleMs: 5_000,
  totalMs: 20_000,
  answerBytesMax: 200_000,
  toolCallsMax: 10,
}
const question: ModelMessage = { role: 'user', text: 'What do I hold?' }
const price = { name: 'price', description: 'The price of a token', inputSchema: { type: 'object' } }
const request: ModelRequest = { instructions: 'Be brief.', messages: [question], tools: [price] }

type Options = { limits?: Partial<ModelLimits>; through?: StreamingNet; url?: string; waitMsMax?: number }
const endpoint = (api: ModelApi, name: string, options: Options = {}) =>
  createModelEndpoint({
    url: options.url ?? world.url,
    api,
    name,
    key,
    net: options.through ?? net,
    random: systemRandom,
    limits: { ...limits, ...options.limits },
    backoff: { firstMs: 10, maxMs: options.waitMsMax ?? 2_000 },
  })

type Read = { events: ModelEvent[]; error: unknown; ms: number }
/** Reads a turn to its end, or to its error. */
async function readTurn(turn: AsyncIterable<ModelEvent>): Promise<Read> {
  const events: ModelEvent[] = []
  const startedMs = performance.now()
  const elapsed = () => performance.now() - startedMs
  try {
    for await (const event of turn) events.push(event)
    return { events, error: undefined, ms: elapsed() }
  } catch (error) {
    return { events, error, ms: elapsed() }
  }
}
const run = async (api: ModelApi, turns: object[][], options: Options & { request?: ModelRequest } = {}) =>
  readTurn(endpoint(api, await world.script(turns), options).turn(options.request ?? request))

const textOf = ({ events }: Read) => events.map((event) => (event.type === 'text' ? event.text : '')).join('')
const callsOf = ({ events }: Read) => events.filter((event) => event.type === 'tool_call')
const stopOf = ({ events, error }: Read) => {
  assert.equal(error, undefined, String(error))
  const stops = events.filter((event) => event.type === 'stop')
  assert.equal(stops.length, 1)
  assert.equal(events.at(-1), stops[0])
  return stops[0]!.reason
}
const codeOf = ({ events, error }: Read) => {
  assert.ok(error instanceof Fault, String(error))
  assert.ok(!events.some(({ type }) => type === 'stop'))
  return error.code
}
const requestCount = async () => (await world.requests()).length

const words = 'You hold 1.5 ETH – about $5,250 🎉.'
const twoCalls = [
  { name: 'price', arguments: { symbol: 'ETH', amount: '1.5' } },
  { name: 'price', arguments: { symbol: 'Bitcoin "₿"', nested: { list: [1, null] } } },
]

for (const api of ['openai', 'anthropic'] as const) {
  const wires: [string, object[]][] = [
    ['in pieces', []],
    ['byte by byte', [{ type: 'wire', split_bytes: 1 }]],
    ['with CRLF', [{ type: 'wire', line_end: 'crlf', split_bytes: 7 }]],
    ['with CR', [{ type: 'wire', line_end: 'cr', split_bytes: 5 }]],
    ['between comments', [{ type: 'wire', comments: true }]],
  ]
  for (const [how, wire] of wires)
    test(`${api}: a text and calls that come ${how} are one answer`, async () => {
      const read = await run(api, [[...wire, text(words), tools(twoCalls, { piece: 3, interleave: true })]])
      assert.equal(stopOf(read), 'tools')
      assert.equal(textOf(read), words)
      const calls = callsOf(read).map(({ name, arguments: input }) => ({
        name,
        arguments: input.isValid && input.value,
      }))
      assert.deepEqual(calls, twoCalls)
      const usage = read.events.find((event) => event.type === 'usage')
      assert.ok(usage && usage.inputTokens > 0 && usage.outputTokens > 0)
    })

  test(`${api}: a conversation goes on with the results of its calls, whatever their ids and arguments`, async () => {
    const turns = [
      [
        tools([
          { name: 'price', id: 'same', arguments_text: '{"symbol":' },
          { name: 'price', id: 'same', arguments: { symbol: 7 } },
          { name: 'unknown_tool' },
        ]),
      ],
      [tools([{ name: 'price', id: 'same', arguments: [] }])],
      [text('ETH costs 3500.')],
    ]
    const model = endpoint(api, await world.script(turns))
    const messages: ModelMessage[] = [question]
    const answers: Read[] = []
    for (let turn = 0; turn < turns.length; turn++) {
      const read = await readTurn(model.turn({ ...request, messages }))
      answers.push(read)
      const calls = callsOf(read)
      messages.push({ role: 'assistant', text: textOf(read), calls })
      for (const { id } of calls) messages.push({ role: 'tool', callId: id, text: '3500', isError: false })
    }
    assert.deepEqual(answers.map(stopOf), ['tools', 'tools', 'end'])
    assert.equal(textOf(answers[2]!), 'ETH costs 3500.')
    const calls = answers.flatMap(callsOf)
    assert.equal(new Set(calls.map(({ id }) => id)).size, 4)
    assert.deepEqual(
      calls.map(({ name, arguments: input }) => [name, input.isValid ? input.value : input.problem]),
      [
        ['price', 'the arguments are no valid JSON'],
        ['price', { symbol: 7 }],
        ['unknown_tool', {}],
        ['price', 'the arguments are no JSON object'],
      ],
    )
  })

  test(`${api}: calls with indexes out of order and with gaps are whole`, async () => {
    const calls = twoCalls.map((call, at) => ({ ...call, index: [7, 3][at] }))
    const read = await run(api, [[tools(calls, { interleave: true })]])
    assert.deepEqual(
      callsOf(read).map(({ argumentsText }) => argumentsText),
      twoCalls.map(({ arguments: input }) => JSON.stringify(input)),
    )
  })

  test(`${api}: a refusal, a spent limit and a cut call have their reasons`, async () => {
    const refusal = await run(api, [[{ type: 'refusal', text: 'I do not do that.' }]])
    assert.deepEqual([textOf(refusal), stopOf(refusal)], ['I do not do that.', 'refusal'])
    assert.equal(stopOf(await run(api, [[text('So '), { type: 'stop', reason: 'refusal' }]])), 'refusal')
    const cut = [tools([{ name: 'price', arguments_text: '{"symb' }]), { type: 'stop', reason: 'length' }]
    const short = await run(api, [[text('So '), ...cut]])
    assert.equal(stopOf(short), 'length')
    assert.equal(callsOf(short)[0]!.arguments.isValid, false)
  })

  test(`${api}: an answer without usage, with empty chunks, thoughts and two ends is an answer`, async () => {
    const read = await run(api, [
      [
        { type: 'thinking', text: 'What is it?' },
        { type: 'empty' },
        text(words),
        { type: 'usage', absent: true },
        { type: 'empty' },
        { type: 'stop', reason: 'end', times: 2 },
      ],
    ])
    assert.deepEqual([textOf(read), stopOf(read)], [words, 'end'])
    assert.ok(!read.events.some(({ type }) => type === 'usage'))
  })

  test(`${api}: the connection may break at each event: what came stays, and the turn ends in one fault`, async () => {
    const pieces = [...'abcdefgh']
    for (const end of ['reset', 'close'])
      for (let at = 0; at <= pieces.length; at++) {
        const steps = [...pieces.slice(0, at).map((piece) => text(piece)), { type: end }]
        const read = await run(api, [steps])
        assert.equal(codeOf(read), 'upstream_timeout', `${end} after ${at}`)
        assert.equal(textOf(read), pieces.slice(0, at).join(''))
      }
    assert.equal(await requestCount(), 18)
  })

  test(`${api}: calls that were not complete when the connection broke are none`, async () => {
    const read = await run(api, [
      [text('I look.'), tools([{ name: 'price', arguments_text: '{"a":1' }]), { type: 'reset' }],
    ])
    assert.equal(codeOf(read), 'upstream_timeout')
    if (api === 'openai') assert.deepEqual(callsOf(read), [])
    else assert.ok(callsOf(read).every((call) => !call.arguments.isValid))
  })

  test(`${api}: an error within the answer is a fault that passes or does not`, async () => {
    const overloaded = await run(api, [[text('So '), { type: 'error', status: 529 }]])
    assert.deepEqual([codeOf(overloaded), textOf(overloaded)], ['unavailable', 'So '])
    const wrong = await run(api, [[text('So '), { type: 'error', status: 400 }]])
    assert.equal(codeOf(wrong), 'upstream_rejected')
    assert.equal(await requestCount(), 2)
  })

  for (const status of [429, 500, 502, 503, 529])
    test(`${api}: ${status} before the answer is retried twice`, async () => {
      const fail = (times: number) => [{ type: 'fail', status, times }, text('At last')]
      assert.equal(textOf(await run(api, [fail(2)])), 'At last')
      const failing = await run(api, [fail(3)])
      assert.equal(codeOf(failing), 'unavailable')
      assert.equal((failing.error as Fault).extras.upstream_status, status)
      assert.equal(await requestCount(), 6)
    })

  test(`${api}: a page instead of an answer is retried by its status, and is a change with 200`, async () => {
    const page = [{ type: 'fail', status: 502, html: true }, text('At last')]
    assert.equal(textOf(await run(api, [page])), 'At last')
    await world.control('PUT', '/faults', { target: 'model', status: 200, html: true })
    assert.equal(codeOf(await run(api, [])), 'upstream_changed')
  })

  test(`${api}: the pause that the endpoint asks for is made, unless it is too long`, async () => {
    const fail = (seconds: number) => [
      { type: 'fail', status: 429, retry_after_seconds: seconds },
      text('At last'),
    ]
    const patient = await run(api, [fail(1)])
    assert.equal(textOf(patient), 'At last')
    assert.ok(patient.ms >= 990, `${patient.ms} ms`)
    for (const options of [{}, { waitMsMax: 600_000, limits: { totalMs: 1_000 } }]) {
      const impatient = await run(api, [fail(30)], options)
      assert.equal(codeOf(impatient), 'unavailable')
      assert.equal((impatient.error as Fault).extras.retry_after, 30)
    }
    // A turn that pauses sends another request, or ends with the time limit of the turn instead of the refusal.
    assert.equal(await requestCount(), 4)
  })

  test(`${api}: nobody who answers is an outage, after three attempts`, async () => {
    await world.control('PUT', '/faults', { target: 'model', refuse: true })
    const read = await run(api, [])
    assert.ok(['upstream_timeout', 'unavailable'].includes(codeOf(read)))
    const { faults } = await world.control<{ faults: { hits: number }[] }>('GET', '/faults')
    assert.equal(faults[0]!.hits, 3)
    await world.control('PUT', '/faults', { target: 'model', refuse: true, count: 2 })
    assert.equal(stopOf(await readTurn(endpoint(api, 'local').turn(request))), 'end')
  })

  test(`${api}: the first token, silence and the whole turn each have a limit`, async () => {
    const reason = ({ error }: Read) => (error as Error).message
    for (const step of ['delay', 'pause']) {
      const late = await run(api, [[{ type: step, ms: 30_000 }, text('Late')]], {
        // The limit of the turn would be named if it expired first.
        limits: { firstTokenMs: 300, totalMs: 3_000 },
      })
      assert.equal(codeOf(late), 'upstream_timeout')
      assert.match(reason(late), /did not begin its answer within 300 ms/)
    }
    const silent = await run(api, [[text('So '), { type: 'pause', ms: 30_000 }, text('late')]], {
      limits: { idleMs: 300 },
    })
    assert.deepEqual([codeOf(silent), textOf(silent)], ['upstream_timeout', 'So '])
    assert.match(reason(silent), /silent for 300 ms/)
    const endless = await run(api, [[text('x'.repeat(600), { pace_ms: 20, piece: 1 })]], {
      limits: { totalMs: 500 },
    })
    assert.equal(codeOf(endless), 'upstream_timeout')
    assert.match(reason(endless), /did not finish its answer within 500 ms/)
    const received = textOf(endless).length
    assert.ok(received > 0 && received < 3_000 / 20, `${received} pieces, one each 20 ms`)
    // None of them is asked for again.
    assert.equal(await requestCount(), 4)
  })

  test(`${api}: a slow answer within its limits is read, and empty chunks are no first token`, async () => {
    const slow = [{ type: 'delay', ms: 300 }, text('abcdefgh', { pace_ms: 200, piece: 1 })]
    const read = await run(api, [slow], { limits: { firstTokenMs: 1_200, idleMs: 1_500 } })
    assert.equal(textOf(read), 'abcdefgh')
    const chatter = Array.from({ length: 30 }, () => [{ type: 'empty' }, { type: 'pause', ms: 50 }]).flat()
    const begun = await run(api, [[...chatter, text('Late')]], {
      limits: { firstTokenMs: 400, idleMs: 1_500 },
    })
    assert.match((begun.error as Error).message, /did not begin/)
  })

  test(`${api}: a model that thinks for longer than its first token may take has begun`, async () => {
    const thoughts = { type: 'thinking', text: 'x'.repeat(30), piece: 1, pace_ms: 50 }
    const read = await run(api, [[thoughts, text('Hold.')]], { limits: { firstTokenMs: 700, idleMs: 3_000 } })
    assert.deepEqual([stopOf(read), textOf(read)], ['end', 'Hold.'])
  })

  test(`${api}: an answer is bounded in bytes and calls, and lines that cannot be read are a change`, async () => {
    const large = await run(api, [[text('x'.repeat(300_000), { piece: 20_000 })]])
    assert.equal(codeOf(large), 'upstream_rejected')
    const line = await run(api, [[{ type: 'raw', text: `data: ${'x'.repeat(210_000)}` }]])
    assert.equal(codeOf(line), 'upstream_rejected')
    const calls = Array.from({ length: 11 }, () => ({ name: 'price' }))
    assert.equal(codeOf(await run(api, [[tools(calls)]])), 'upstream_rejected')
    for (const raw of ['data: {"a":\n\n', 'data: null\n\n', 'data: <html>\n\n'])
      assert.equal(
        codeOf(await run(api, [[text('So '), { type: 'raw', text: raw }]])),
        'upstream_changed',
        raw,
      )
    assert.equal(await requestCount(), 6)
  })

  test(`${api}: a wrong key, an unknown model and a wrong request are not retried`, async () => {
    const unknown = await readTurn(endpoint(api, 'other').turn(request))
    assert.equal(codeOf(unknown), 'upstream_rejected')
    assert.match((unknown.error as Error).message, /has no model other/)
    const wrong = await run(api, [], {
      request: { ...request, messages: [{ role: 'tool', callId: 'x', text: '', isError: false }] },
    })
    assert.equal(codeOf(wrong), 'upstream_rejected')
    await world.control('PUT', '/model/settings', { keys: ['another'] })
    assert.equal(codeOf(await run(api, [])), 'upstream_rejected')
    await world.control('PUT', '/model/settings', { keys: [key] })
    assert.equal(stopOf(await run(api, [[text('Yes')]])), 'end')
    assert.equal(await requestCount(), 3)
  })

  test(`${api}: no fault and no metric has the key, also where the endpoint repeats it`, async () => {
    await world.control('PUT', '/model/settings', { keys: ['another'] })
    const errors = [(await run(api, [])).error]
    await world.control('DELETE', '/model/settings')
    for (const status of [400, 500])
      errors.push(
        (await run(api, [[text('So '), { type: 'error', status, message: `Bad key ${key}` }]])).error,
      )
    for (const error of errors) {
      assert.ok(error instanceof Fault)
      const { message, extras, cause } = error
      const texts = [message, JSON.stringify(extras), String(cause), error.stack, (cause as Error)?.stack]
      assert.ok(!texts.join().includes(key), texts.join('\n'))
    }
    assert.ok(!JSON.stringify(await net.metrics()).includes(key))
  })

  test(`${api}: fields that the model refuses are learned once`, async () => {
    const refused = api === 'openai' ? ['max_tokens', 'temperature', 'stream_options'] : ['temperature']
    await world.control('PUT', '/model/settings', { rejected_parameters: refused })
    const model = endpoint(api, await world.script([[text('Yes')]]))
    for (let at = 0; at < 2; at++) assert.equal(stopOf(await readTurn(model.turn(request))), 'end')
    assert.equal(await requestCount(), refused.length + 2)
    const body = (await world.requests()).at(-1)!
    assert.equal(body.temperature, undefined)
    if (api === 'openai') assert.equal(body.max_completion_tokens, limits.tokensMax)
    await world.control('PUT', '/model/settings', { rejected_parameters: ['messages'] })
    assert.equal(codeOf(await readTurn(model.turn(request))), 'upstream_rejected')
  })

  test(`${api}: a request may ask for fewer tokens than the setting, never for more`, async () => {
    for (const [asked, sent] of [
      [undefined, 500],
      [50, 50],
      [5_000, 500],
    ] as const) {
      await run(api, [], { request: { ...request, ...(asked !== undefined && { tokensMax: asked }) } })
      assert.equal((await world.requests()).at(-1)!.max_tokens, sent)
    }
  })

  test(`${api}: a caller who gives up gets the own reason, before, within and between the attempts`, async () => {
    const reason = new Error('the caller left')
    const paced = endpoint(api, await world.script([[text('abcdef', { pace_ms: 200, piece: 1 })]]))
    await assert.rejects(readAll(paced.turn(request, { signal: AbortSignal.abort(reason) })), reason)
    assert.equal(await requestCount(), 0)
    const within = new AbortController()
    await assert.rejects(async () => {
      for await (const event of paced.turn(request, { signal: within.signal }))
        if (event.type === 'text') within.abort(reason)
    }, reason)
    const limited = [{ type: 'fail', status: 429, retry_after_seconds: 2, times: 5 }]
    const between = new AbortController()
    const waiting = readTurn(endpoint(api, await world.script([limited])).turn(request, between))
    await eventuallySent(2)
    let left: Read | undefined
    void waiting.then((read) => {
      left = read
    })
    between.abort(reason)
    // The pause between the attempts takes seconds.
    for (let turn = 0; turn < 1_000 && !left; turn++) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(left?.error, reason)
  })

  test(`${api}: a reader that stops early frees the connection`, async () => {
    let sent: NetRequest | undefined
    const through: StreamingNet = {
      open: (asked) => {
        sent = asked
        return net.open(asked)
      },
    }
    const model = endpoint(api, await world.script([[text('abcdef', { pace_ms: 5_000, piece: 1 })]]), {
      through,
    })
    for await (const event of model.turn(request)) if (event.type === 'text') break
    assert.equal(sent!.signal!.aborted, true)
  })
}

test('the settings give interface, name, key and limits, and without an address there is no model', async () => {
  await world.control('PUT', '/model/settings', { keys: ['sk-right'] })
  const settings = { MODEL_API: 'anthropic', MODEL_KEY: 'sk-right', MODEL_TOKENS_MAX: '77' }
  const open = (env: Record<string, string>, url: string | undefined) =>
    openModel({ core: { config: readConfig(env), random: systemRandom }, url, net })
  assert.equal(open(settings, undefined), undefined)
  const found = open({ ...settings, MODEL_IDLE_SECONDS: '1' }, world.url)!
  assert.equal(stopOf(await readTurn(found.turn(request))), 'end')
  const { model: asked, max_tokens: tokens } = (await world.requests())[0]!
  assert.deepEqual([asked, tokens], ['local', 77])
  const silent = await world.script([[text('So '), { type: 'pause', ms: 30_000 }]])
  const named = open({ ...settings, MODEL_NAME: silent, MODEL_IDLE_SECONDS: '1' }, world.url)!
  assert.match(((await readTurn(named.turn(request))).error as Error).message, /silent for 1000 ms/)
})

async function readAll(turn: AsyncIterable<ModelEvent>): Promise<void> {
  for await (const _ of turn);
}
async function eventuallySent(count: number): Promise<void> {
  const untilMs = performance.now() + 30_000
  while ((await requestCount()) < count) assert.ok(performance.now() < untilMs)
}
