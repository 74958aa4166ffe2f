import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { bearer, eventually, http } from '../harness/gateway.ts'
import { type ChatApp, type ChatUser, openChatApp } from './chat-app.ts'
import { script } from './scripted-answerer.ts'
import { testOperations } from './test-operations.ts'

type Recommendation = {
  id: string
  status: string
  task_id: string | null
  title: string
  detail: string
  action: { operation: string; input: object; intent_sha256: string; expires_at: string }
}
type Message = { chat_id: string; role: string; recommendations: Recommendation[] }
type ToolResponse = { type: string; data: { name: string; output: Record<string, unknown> } }

describe('recommendations', () => {
  let app: ChatApp
  before(async () => {
    app = await openChatApp({ overrides: { addOperations: testOperations } })
  })
  after(async () => app?.[Symbol.asyncDispose]())

  async function propose(user: ChatUser, ...inputs: object[]) {
    const events = await user.ask(
      script(...inputs.map((input) => ({ call: 'test_move', input: input as never }))),
    )
    const chatId = events[0]!.id!.split(':')[0]!
    const messages = await user.get<Message[]>(`/v1/chat/threads/${chatId}`)
    const responses = events.flatMap(({ event, data }) =>
      event === 'tool_response' ? [data as ToolResponse] : [],
    )
    return { chatId, responses, recommendations: messages.at(-1)!.recommendations }
  }
  type Decision = { chatId: string; id: string; status: string; at?: number; key?: string }
  const decide = (user: ChatUser, { chatId, id, status, at = 0, key }: Decision) =>
    http(`${app.instances[at]!.url}/v1/chat/${chatId}/recommendations/${id}`, {
      method: 'PATCH',
      body: { status },
      headers: { ...bearer(user), ...(key !== undefined && { 'idempotency-key': key }) },
    })
  const movesOf = async (user: ChatUser) =>
    (await user.get<{ items: { task_id: string; status: string }[] }>('/v1/tasks?kind=test_move')).items

  test('what would change anything is recommended and not started', async () => {
    const user = await app.user()
    const { responses, recommendations } = await propose(user, { units: 3 })
    const [recommendation] = recommendations
    assert.deepEqual(
      [recommendation?.status, recommendation?.action.operation, recommendation?.action.input],
      ['open', 'test_move', { units: 3 }],
    )
    assert.deepEqual(responses[0]?.data.output, { recommendation_id: recommendation?.id, status: 'open' })
    assert.deepEqual([recommendation?.title, recommendation?.detail], ['Move units', 'units 3'])
    assert.deepEqual(await movesOf(user), [])
  })

  test('a wrong input is an error of the tool, and a fourth recommendation is refused', async () => {
    const user = await app.user()
    const { responses, recommendations } = await propose(
      user,
      { units: 0 },
      { units: 1 },
      { units: 2 },
      { units: 3 },
      { units: 4 },
    )
    assert.deepEqual(
      responses.map(({ type, data }) => (type === 'error' ? data.output.code : 'open')),
      ['validation', 'open', 'open', 'open', 'policy_denied'],
    )
    assert.equal(recommendations.length, 3)
  })

  test('accepted starts it once, however often and wherever that is repeated; declined comes too late then', async () => {
    const user = await app.user()
    const { chatId, recommendations } = await propose(user, { units: 5 })
    const id = recommendations[0]!.id
    const all = await Promise.all(
      Array.from({ length: 16 }, (_, at) => decide(user, { chatId, id, status: 'accepted', at: at % 2 })),
    )
    const accepted = all.filter(({ status }) => status === 200)
    assert.ok(accepted.length > 0)
    for (const { status, body } of all)
      if (status !== 200) assert.deepEqual([status, body.code], [409, 'conflict'])
    const [move, ...others] = await movesOf(user)
    assert.deepEqual(others, [])
    assert.deepEqual([...new Set(accepted.map(({ body }) => body.task_id))], [move?.task_id])
    const again = await decide(user, { chatId, id, status: 'accepted', at: 1 })
    assert.deepEqual([again.status, again.body.task_id], [200, move?.task_id])
    const late = await decide(user, { chatId, id, status: 'declined' })
    assert.deepEqual([late.status, late.body.code], [409, 'conflict'])
    await eventually(
      async () => ((await movesOf(user))[0]?.status === 'completed' ? true : undefined),
      'the move',
    )
  })

  test('declined stays declined', async () => {
    const user = await app.user()
    const { chatId, recommendations } = await propose(user, { units: 5 })
    const id = recommendations[0]!.id
    const first = await decide(user, { chatId, id, status: 'declined', key: 'k' })
    assert.deepEqual([first.status, first.body.status, first.body.task_id], [200, 'declined', null])
    assert.deepEqual((await decide(user, { chatId, id, status: 'declined', key: 'k' })).body, first.body)
    assert.equal((await decide(user, { chatId, id, status: 'accepted' })).status, 409)
    assert.deepEqual(await movesOf(user), [])
  })

  test('nobody decides for somebody else, and an absent one looks the same', async () => {
    const [user, stranger] = [await app.user(), await app.user()]
    const { chatId, recommendations } = await propose(user, { units: 5 })
    const id = recommendations[0]!.id
    const foreign = await decide(stranger, { chatId, id, status: 'accepted' })
    const absent = await decide(stranger, { chatId, id: crypto.randomUUID(), status: 'accepted' })
    const without = ({ body: { request_id: _, ...body }, status }: typeof foreign) => ({ status, body })
    assert.deepEqual(without(foreign), without(absent))
    assert.equal(foreign.status, 404)
  })

  test('what was changed after it was shown, and what has expired, is not started', async () => {
    const user = await app.user()
    const { chatId, recommendations } = await propose(user, { units: 5 }, { units: 6 })
    const [changed, old] = recommendations
    await app.db.query(
      `update chat_recommendation set input = '{"units": 500}' where recommendation_id = $1`,
      [changed!.id],
    )
    assert.equal((await decide(user, { chatId, id: changed!.id, status: 'accepted' })).status, 409)
    await app.db.query(
      'update chat_recommendation set expires_at = created_at where recommendation_id = $1',
      [old!.id],
    )
    const expired = await decide(user, { chatId, id: old!.id, status: 'accepted' })
    assert.deepEqual([expired.status, expired.body.code], [409, 'quote_expired'])
    assert.deepEqual(await movesOf(user), [])
  })

  test('a start that a killed gateway did not note is found again, and is no longer declined', async () => {
    const user = await app.user()
    const { chatId, recommendations } = await propose(user, { units: 5 })
    const id = recommendations[0]!.id
    const { body } = await decide(user, { chatId, id, status: 'accepted' })
    await app.db.query(
      `update chat_recommendation set status = 'open', task_id = null where recommendation_id = $1`,
      [id],
    )
    assert.equal((await decide(user, { chatId, id, status: 'declined' })).status, 409)
    const again = await decide(user, { chatId, id, status: 'accepted', at: 1 })
    assert.deepEqual([again.status, again.body.task_id], [200, body.task_id])
    assert.equal((await movesOf(user)).length, 1)
  })

  test('a long output is shortened in its event, and closed operations are no tools', async () => {
    const user = await app.user()
    const events = await user.ask(
      script(
        { call: 'test_list', input: { rows: 5_000 } },
        { call: 'auth_revoke' },
        { call: 'policy_kill', input: { on: true } },
        { call: 'chat_threads' },
        { call: 'webhooks_list' },
      ),
    )
    const [long, ...closed] = events.flatMap(({ event, data }) =>
      event === 'tool_response' ? [data as ToolResponse] : [],
    )
    const rows = long!.data.output.rows as object[]
    assert.deepEqual(rows.at(-1), { omitted: 5_000 - (rows.length - 1) })
    assert.deepEqual(
      closed.map(({ data }) => data.output.code),
      // Nothing that this user said asks for the kill switch.
      ['not_found', 'policy_denied', 'not_found', 'not_found'],
    )
  })
})
