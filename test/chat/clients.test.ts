import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { runCli } from '#edges/cli/cli.ts'
import { PorticoError, portico } from '#sdk/sdk.ts'
import { bearer, eventually, http } from '../harness/gateway.ts'
import { formerClient } from '../mcp/clients.ts'
import { bySize } from '../proof/support/seed.ts'
import { type ChatApp, type ChatUser, openChatApp } from './chat-app.ts'
import { script } from './scripted-answerer.ts'
import { testOperations } from './test-operations.ts'

/** Cuts each connection after so many bytes of its body. */
const cutting =
  (bytesOf: () => number): typeof fetch =>
  async (input, init) => {
    const cut = new AbortController()
    const reply = await fetch(input, {
      ...init,
      signal: AbortSignal.any([cut.signal, init?.signal ?? cut.signal]),
    })
    if (!reply.headers.get('content-type')?.startsWith('text/event-stream')) return reply
    let left = bytesOf()
    const body = reply.body!.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(bytes, controller) {
          if (left <= 0) return
          left -= bytes.length
          controller.enqueue(bytes)
          if (left <= 0) {
            cut.abort()
            controller.terminate()
          }
        },
      }),
    )
    return new Response(body, { status: reply.status, headers: reply.headers })
  }

/** The digits of a fixed sequence, so that a failure repeats. */
const seeded = (seed: number) => {
  let state = seed
  return (max: number): number => {
    state = (state * 48_271) % 2_147_483_647
    return state % max
  }
}

describe('clients of the chat', () => {
  let app: ChatApp
  before(async () => {
    app = await openChatApp({ overrides: { addOperations: testOperations } })
  })
  after(async () => app?.[Symbol.asyncDispose]())

  const clientOf = (user: ChatUser, more: object = {}) =>
    portico({ baseUrl: app.url, auth: { token: user.token }, ...more })
  const query = script({ plan: 'one' }, { call: 'credits_packs' }, { spell: 'abcdefgh', everyMs: 2 })

  test('the SDK reads a stream to its end over any cuts, with no event missing or twice', async () => {
    const user = await app.user()
    for (let seed = 1; seed <= bySize({ short: 6, full: 30, nightly: 200 }); seed++) {
      const next = seeded(seed)
      const client = clientOf(user, { fetch: cutting(() => 120 + next(900)) })
      const events = []
      for await (const event of client.chat.stream({ query }, { maxReconnects: 50 })) events.push(event)
      const [first] = events
      assert.equal(first?.event, 'meta', `seed ${seed}`)
      const chatId = first.event === 'meta' ? first.data.chat_id : ''
      assert.deepEqual(
        events.map(({ id }) => id),
        events.map((_, at) => `${chatId}:${at + 1}`),
        `seed ${seed}`,
      )
      assert.equal(events.at(-1)?.event, 'done')
    }
  })

  test('the SDK throws what an answer failed of, and does not ask again', async () => {
    const user = await app.user()
    const client = clientOf(user)
    const read = async () => {
      for await (const _ of client.chat.stream({ query: script({ say: 'a' }, { fail: 'fault' }) }));
    }
    await assert.rejects(read, (error: unknown) => error instanceof PorticoError && error.code === 'conflict')
  })

  async function cli(user: ChatUser, words: string[], signal = AbortSignal.timeout(30_000)) {
    let [out, err] = ['', '']
    const code = await runCli([...words, '--base-url', app.url], {
      env: { XDG_CONFIG_HOME: '/nowhere', PORTICO_TOKEN: user.token },
      home: '/nowhere',
      out: (text) => {
        out += text
      },
      err: (text) => {
        err += text
      },
      isInteractive: false,
      openBrowser: () => {},
      signal,
    })
    return { code, out, err }
  }

  test('portico chat prints the plan, the tools, the answer and what is recommended', async () => {
    const user = await app.user()
    const asked = script(
      { plan: 'Look' },
      { call: 'credits_packs' },
      { call: 'test_move', input: { units: 2 } },
      { say: 'So.' },
    )
    const { code, out, err } = await cli(user, ['chat', asked])
    assert.equal(code, 0, err)
    assert.match(out, /^credits_packs ok\. test_move ok\. So\.\n/)
    const command = /portico (chat decide \S+ \S+ --status accepted)/.exec(out)?.[1]
    assert.ok(command, out)
    assert.match(err, /^· Look\n→ credits_packs\n→ test_move units=2\n/)
    assert.match(err, /\ncompleted, 1 credit used, 199 left\n$/)
    assert.match(
      out,
      /\nRecommended: Move units\n {2}units 2\n {2}Operation: test_move\n {2}Valid until: .+\n/,
    )
    const decided = await cli(user, [...command.split(' '), '--json'])
    assert.equal((JSON.parse(decided.out) as { status: string }).status, 'accepted')
  })

  test('portico chat prints the links of files', async () => {
    const user = await app.user()
    const { code, out } = await cli(user, [
      'chat',
      script({ publish: 'report.md', bytes: 6 }, { say: 'Written.' }),
    ])
    assert.equal(code, 0)
    const [, url = ''] = /report\.md, 6 bytes\n {2}(\S+)\n/.exec(out) ?? []
    assert.equal(await (await fetch(url)).text(), 'aaaaaa', out)
  })

  test('leaving portico chat stops the answer', async () => {
    const user = await app.user()
    const left = new AbortController()
    const running = cli(user, ['chat', script({ say: 'a' }, { hang: true })], left.signal)
    const chatId = await eventually(async () => {
      const tasks = await user.get<{ items: { task_id: string; status: string }[] }>('/v1/tasks?kind=chat')
      return tasks.items.find(({ status }) => status === 'running')?.task_id
    }, 'the answer runs')
    left.abort()
    await running
    await eventually(async () => {
      const { status } = await user.get<{ status: string }>(`/v1/tasks/${chatId}`)
      return status === 'cancelled' ? true : undefined
    }, 'the answer is stopped')
  })

  test('the tool of MCP answers whole, and reports the plan as its progress', async () => {
    const user = await app.user()
    await using client = await formerClient(app.url, { authorization: bearer(user).authorization })
    const progress: (string | undefined)[] = []
    const result = await client.call('chat_stream', { query }, ({ message }) => progress.push(message))
    assert.deepEqual(progress, ['one', 'Calls credits_packs'])
    assert.equal(result.structuredContent?.answer, 'credits_packs ok. abcdefgh')
    const { body } = await http<{ credits_available: number }>(`${app.url}/v1/credits`, {
      headers: bearer(user),
    })
    assert.equal(body.credits_available, 199)
  })
})
