/**
 * An app to which the person has allowed everything, and a thief of its tokens: no money reaches a new address without a
 * page of the gateway, and what is left after the end of the token is listed and can be undone.
 */
import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { after, before, test } from 'node:test'
import { base58 } from '#upstreams/solana/base58.ts'
import {
  type Agent,
  type Answer,
  eventually,
  freshGateway,
  http,
  newAgent,
  signedAct,
} from '../harness/gateway.ts'
import { type SentEvent, sentEvents } from '../harness/stream.ts'
import { errorOf, modernClient, sseClient, type ToolReply } from '../mcp/clients.ts'
import { confirming } from '../oauth/confirming.ts'
import {
  authorizeUrl,
  type ConnectingPerson,
  type Connection,
  redirectUri,
  register,
  tokenRequest,
  verifier,
} from '../oauth/session.ts'
import { askerOf } from '../webhooks/connected-apps.ts'
import { openReceiver } from '../webhooks/receiver.ts'
import { everyBox, personWithApp, signInApp } from './signed-in.ts'
import { balancesOf } from './swap-users.ts'
import { type Person, type TaskBody, whenFunded } from './users.ts'
import { arbitrum, base, polygon, solana, type World, worldOf } from './world.ts'

const coolingSeconds = 2

let gateway: Awaited<ReturnType<typeof freshGateway>>
let world: World
before(async () => {
  // What counts only after a day counts here after seconds: time alone must not help an app.
  gateway = await freshGateway({ COOLING_SECONDS: String(coolingSeconds), RATE_AUTH: '0' })
  world = await worldOf(gateway.world)
})
after(() => gateway?.[Symbol.asyncDispose]())

type Body = {
  code?: string
  error?: string
  state?: string
  task_id: string
  approval?: { approval_id: string; confirm_url: string }
  confirmation?: { approval_id: string; confirm_url: string }
}
type Reply = Pick<Answer<Body>, 'status' | 'body'>

/** The code of a refusal, `waits` where a page of the gateway decides, or the whole answer. */
function verdictOf({ status, body }: Reply): string {
  if (status >= 400) return body.code ?? body.error ?? String(status)
  const page = (body.confirmation ?? body.approval)?.confirm_url ?? ''
  const isOwnPage = page.startsWith(`${gateway.url}/oauth/approvals/`)
  return isOwnPage ? 'waits' : `${status} ${JSON.stringify(body)}`
}

const toolVerdict = (reply: ToolReply): string => {
  const { code = '' } = errorOf(reply) ?? {}
  return code === '' ? verdictOf({ status: 200, body: reply.structuredContent as Body }) : String(code)
}

type Request = readonly [route: string, body?: object]
type Attack = {
  person: Person
  connecting: ConnectingPerson
  connection: Connection
  /** The newest access token of the app. */
  token: string
  refreshToken: string
  /** Addresses that nobody has confirmed, one of each family. */
  evm: string
  solana: string
  ask<B = Body>(
    route: string,
    body?: object,
    options?: { key?: string },
  ): Promise<{ status: number; body: B }>
  /** The verdicts of one request after the other. */
  verdicts(...requests: Request[]): Promise<string[]>
}

/** `isRefreshed`: the app has its token by a refresh, as a thief of the refresh token has. */
async function newAttack(isRefreshed: boolean): Promise<Attack> {
  const { person, connecting, connection } = await personWithApp(gateway)
  await whenFunded(person)
  const newest = isRefreshed ? await refresh(connection) : connection.tokens
  const token = newest.access_token
  const { ask } = askerOf(gateway.url, `Bearer ${token}`)
  const limits = { per_day_usd: '400', per_transaction_usd: '50', approval_above_usd: '5' }
  assert.equal((await ask('PUT /v1/policy', limits)).status, 200)
  return {
    person,
    connecting,
    connection,
    token,
    refreshToken: newest.refresh_token,
    // Digits alone have no checksum.
    evm: `0x1${Array.from({ length: 39 }, () => randomInt(10)).join('')}`,
    solana: base58(randomBytes(32)),
    ask,
    async verdicts(...requests) {
      const verdicts: string[] = []
      for (const [route, body] of requests) verdicts.push(verdictOf((await ask(route, body)) as Reply))
      return verdicts
    },
  }
}
const refresh = ({ clientId, tokens }: Connection, fields: Record<string, string> = {}) =>
  tokenRequest(signInApp(gateway), {
    grant_type: 'refresh_token',
    client_id: clientId,
    refresh_token: tokens.refresh_token,
    ...fields,
  })

const usdc = { chain_id: base, token: 'USDC', amount: '3000000' }
const transfers = ({ evm, solana: onSolana }: Attack) =>
  [
    ['POST /v1/wallets/transfer', { ...usdc, recipient: evm }],
    ['POST /v1/wallets/transfer', { ...usdc, token: 'ETH', amount: '1000000000000', recipient: evm }],
    ['POST /v1/wallets/transfer', { ...usdc, chain_id: solana, recipient: onSolana }],
  ] as const
const recipientsOf = ({ evm, solana: onSolana }: Attack) =>
  [
    ['POST /v1/recipients', { chain_id: base, address: evm, label: 'Savings', agents: 'allowed' }],
    ['POST /v1/recipients', { chain_id: solana, address: onSolana, label: 'Savings', agents: 'allowed' }],
  ] as const
const swap = { chain_id_in: base, token_in: 'USDC', token_out: 'ETH', amount_usd: '4' }
type Waiting = {
  approvals: { approval_id: string; intent_sha256: string; intent: { kind: string } }[]
  total: number
}
const waitingOf = async ({ ask }: Pick<Attack, 'ask'>) =>
  (await ask<Waiting>('GET /v1/approvals')).body.approvals

/** Each of them, and the verdicts of its requests in their order. */
type Way = { way: string; verdicts: readonly string[]; attempt(attack: Attack): Promise<readonly string[]> }
const times = (verdict: string, count: number): string[] => Array<string>(count).fill(verdict)

const ways: readonly Way[] = [
  {
    way: 'it sends tokens and coins at once',
    verdicts: times('policy_denied', 3),
    attempt: (attack) => attack.verdicts(...transfers(attack)),
  },
  {
    way: 'it adds its addresses as recipients, and sends when the time of a new recipient is over',
    verdicts: ['waits', 'waits', ...times('policy_denied', 3)],
    async attempt(attack) {
      const asked = await attack.verdicts(...recipientsOf(attack))
      const until = Date.now() + coolingSeconds * 1_000
      await eventually(async () => Date.now() > until, 'the time of a new recipient is over')
      return [...asked, ...(await attack.verdicts(...transfers(attack)))]
    },
  },
  {
    way: 'it approves its own request, by the interface and by the form of the page with its token as the cookie',
    verdicts: [...times('step_up_required', 2), '403', '403'],
    async attempt(attack) {
      const waiting = await waitingOf(attack)
      const byInterface = waiting.map(
        ({ approval_id, intent_sha256 }) =>
          [`POST /v1/approvals/${approval_id}/approve`, { intent_sha256 }] as const,
      )
      const byForm = waiting.map(({ approval_id, intent_sha256 }) =>
        http<Body>(`${gateway.url}/oauth/approvals/${approval_id}/approve`, {
          method: 'POST',
          body: new URLSearchParams({ intent_sha256 }).toString(),
          headers: {
            'content-type': 'application/x-www-form-urlencoded',
            origin: gateway.url,
            cookie: `portico_approvals=${attack.token}; portico_account=${attack.token}`,
          },
        }),
      )
      return [...(await attack.verdicts(...byInterface)), ...(await Promise.all(byForm)).map(verdictOf)]
    },
  },
  {
    way: 'it swaps and bridges to its addresses, and accepts any loss',
    verdicts: [...times('validation', 3), 'waits'],
    attempt: (attack) =>
      attack.verdicts(
        ['POST /v1/swap', { ...swap, recipient: attack.evm }],
        ['POST /v1/swap', { ...swap, chain_id_out: polygon, token_out: 'USDC', recipient: attack.evm }],
        ['POST /v1/swap', { ...swap, chain_id_out: solana, token_out: 'SOL', recipient: attack.solana }],
        ['POST /v1/swap', { ...swap, max_price_impact_bps: 10_000 }],
      ),
  },
  {
    way: 'it withdraws from the venue and from the vault to its address, and buys credits for it',
    verdicts: times('validation', 4),
    attempt: ({ verdicts, evm }) =>
      verdicts(
        ['POST /v1/perp/withdraw', { amount_usd: '4', destination_chain_id: arbitrum, recipient: evm }],
        ['POST /v1/perp/withdraw', { amount_usd: '4', destination: evm }],
        ['POST /v1/earn/withdraw', { amount_usdc: '4', recipient: evm }],
        ['POST /credits/onchain-recharge', { chain_id: base, amount_usd: '5', recipient: evm }],
      ),
  },
  {
    way: 'it leaves a limit order and a hook that pay its address',
    verdicts: times('validation', 2),
    attempt: ({ verdicts, evm }) =>
      verdicts(
        ['POST /v1/limit-orders', { ...swap, price_usd_trigger: '1', condition: 'gte', recipient: evm }],
        [
          'POST /v1/hooks',
          { chain_id: base, token_address: 'ETH', stop_losses: [{ price_usd: '1' }], recipient: evm },
        ],
      ),
  },
  {
    way: 'it raises every limit and stops asking above an amount',
    verdicts: ['waits', 'waits', 'waits', ...times('policy_denied', 3)],
    attempt: (attack) =>
      attack.verdicts(
        ['PUT /v1/policy', { per_day_usd: '5000', per_transaction_usd: '5000' }],
        ['PUT /v1/policy', { approval_above_usd: null }],
        ['PUT /v1/policy', { chat_per_day_usd: '5000' }],
        ...transfers(attack),
      ),
  },
  {
    way: 'it links an agent of its own, which allows itself a recipient and approves the link',
    verdicts: ['waits', 'waits', 'not_found', 'not_found', 'step_up_required'],
    async attempt(attack) {
      const agent = await newAgent(gateway.url)
      const { ask } = askerOf(gateway.url, `Bearer ${agent.token}`)
      const wallets = await ask<{ wallets: { address: string }[] }>('GET /v1/wallets')
      const { address } = wallets.body.wallets.find((each) => each.address.startsWith('0x'))!
      const recipient = { chain_id: base, address: attack.evm, label: 'Agent', agents: 'allowed' }
      const byApp = await attack.verdicts(
        ['POST /v1/agents', { code: await linkCode(agent) }],
        ['POST /v1/recipients', { ...recipient, address }],
        ['POST /v1/recipients', { ...recipient, for_agent: agent.agentId }],
      )
      const [link] = (await waitingOf(attack)).filter(({ intent }) => intent.kind === 'agents_link')
      const byAgent = [
        await ask(`POST /v1/approvals/${link!.approval_id}/approve`),
        await ask('POST /v1/recipients', recipient),
      ]
      return [...byApp, ...byAgent.map((each) => verdictOf(each as Reply))]
    },
  },
  {
    way: 'it lets the chat propose a transfer and higher limits, and would accept what the chat recommends',
    verdicts: times('nothing is recommended', 3),
    async attempt({ ask, evm }) {
      const verdicts: string[] = []
      for (const query of [
        `send 3 usdc on base to ${evm}`,
        'raise my daily limit to 5000 dollars',
        `add ${evm} to my recipients`,
      ]) {
        const asked = await ask<{ chat_id: string }>('POST /v1/chat', { query, stream: false })
        assert.equal(asked.status, 200, JSON.stringify(asked.body))
        const thread = await ask<{ recommendations: { id: string }[] }[]>(
          `GET /v1/chat/threads/${asked.body.chat_id}`,
        )
        const { recommendations } = thread.body.at(-1)!
        verdicts.push(recommendations.length === 0 ? 'nothing is recommended' : JSON.stringify(thread.body))
      }
      return verdicts
    },
  },
  {
    way: 'it calls the tools of MCP',
    verdicts: ['policy_denied', 'waits', 'waits', 'step_up_required', 'validation'],
    async attempt(attack) {
      const authorization = `Bearer ${attack.token}`
      await using client = await modernClient(gateway.url, { authorization })
      const [waiting] = await waitingOf(attack)
      const { chain_id, ...rest } = usdc
      return [
        await client.call('wallets_transfer', { chain_id, ...rest, recipient: attack.evm }),
        await client.call('recipients_add', recipientsOf(attack)[0][1]),
        await client.call('policy_tighten', { per_day_usd: '5000' }),
        await client.call('approvals_approve', { approval_id: waiting!.approval_id }),
        await client.call('swap_execute', { ...swap, recipient: attack.evm }),
      ].map(toolVerdict)
    },
  },
  {
    way: 'an app that was allowed nothing widens its scopes by a refresh',
    verdicts: ['invalid_scope', 'insufficient_scope', 'insufficient_scope'],
    async attempt(attack) {
      const viewer = await attack.connecting.connect({ asks: everyBox.join(' ') })
      const wider = await refresh(viewer, { scope: `openid ${everyBox.join(' ')}` })
      const { access_token } = await refresh(viewer)
      const { ask } = askerOf(gateway.url, `Bearer ${access_token}`)
      return [
        wider.error ?? '200',
        ...[
          await ask('POST /v1/wallets/transfer', transfers(attack)[0][1]),
          await ask('POST /v1/recipients', recipientsOf(attack)[0][1]),
        ].map((each) => verdictOf(each as Reply)),
      ]
    },
  },
  {
    way: 'it registers another client, and connects it in the browser of the person without a page',
    verdicts: ['consent_required', 'invalid_grant'],
    async attempt({ connecting }) {
      const app = signInApp(gateway)
      const { client_id: another } = await register(app)
      const silent = await connecting.browser.open(
        authorizeUrl(app, another, { prompt: 'none', scope: `openid ${everyBox.join(' ')}` }),
      )
      // The person has signed in to the page of approvals before.
      await connecting.pageToken()
      const page = `${gateway.url}/oauth/approvals/return`
      const own = await connecting.browser.open(
        authorizeUrl(app, 'portico-approvals', {
          prompt: 'none',
          scope: 'openid manage propose',
          resource: gateway.url,
          redirect_uri: page,
        }),
      )
      const code = /[?&]code=([\w-]+)/.exec(own.url)?.[1]
      assert.ok(code, own.url)
      const redeemed = await tokenRequest(app, {
        grant_type: 'authorization_code',
        client_id: 'portico-approvals',
        code,
        redirect_uri: page,
        code_verifier: verifier,
      })
      return [new URL(silent.url).searchParams.get('error') ?? silent.url, redeemed.error ?? '200']
    },
  },
  {
    way: 'it exchanges its token for another one, and asks for tokens without a person',
    verdicts: times('unsupported_grant_type', 4),
    async attempt({ token, connection: { clientId } }) {
      const kind = 'urn:ietf:params:oauth:token-type:access_token'
      const requests: Record<string, string>[] = [
        {
          grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
          subject_token: token,
          subject_token_type: kind,
        },
        { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: token },
        { grant_type: 'client_credentials', scope: everyBox.join(' ') },
        { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: 'x' },
      ]
      const answers = requests.map((fields) =>
        tokenRequest(signInApp(gateway), { client_id: clientId, redirect_uri: redirectUri, ...fields }),
      )
      return (await Promise.all(answers)).map(({ error = '200' }) => error)
    },
  },
  {
    way: 'it has a webhook posted to the page that approves its request',
    verdicts: ['415'],
    async attempt(attack) {
      const [waiting] = await waitingOf(attack)
      const url = `${gateway.url}/oauth/approvals/${waiting!.approval_id}/approve`
      const made = await attack.ask<{ webhook_id: string }>('POST /v1/webhooks', { url })
      const tested = await attack.ask<{ response_status: number }>(
        `POST /v1/webhooks/${made.body.webhook_id}/test`,
      )
      await attack.ask(`DELETE /v1/webhooks/${made.body.webhook_id}`)
      return [String(tested.body.response_status)]
    },
  },
]

for (const isRefreshed of [false, true])
  test(`with its ${isRefreshed ? 'refreshed' : 'first'} token an app finds no way to money at a new address, until the person presses on a page that names it`, async () => {
    const attack = await newAttack(isRefreshed)
    const { person, connecting, ask } = attack
    const before = await balancesOf(world, person)
    const arrived = async () =>
      [...(await balancesOf(world, { ...person, ...addressesOf(attack) }))].filter(([, units]) => units > 0n)
    for (const { way, verdicts, attempt } of ways) {
      assert.deepEqual(await attempt(attack), verdicts, way)
      assert.deepEqual(await arrived(), [], way)
    }
    assert.deepEqual(await balancesOf(world, person), before, 'nothing has left')
    const { body: lists } = await ask<{ recipients: object[] }>('GET /v1/recipients')
    assert.deepEqual(lists.recipients, [])

    // The control: the same requests, once the person has confirmed one of them.
    const [adding] = recipientsOf(attack)
    const again = await ask(...adding, { key: 'add' })
    await connecting.confirm(again.body.approval!.confirm_url)
    const sent = await eventually(async () => {
      const answer = await ask<TaskBody>('POST /v1/wallets/transfer?wait=true', transfers(attack)[0][1], {
        key: 'send',
      })
      return answer.status === 200 ? answer.body : undefined
    }, 'the confirmed recipient is effective')
    assert.deepEqual([sent.status, sent.outcome], ['completed', 'executed'])
    const repeated = await ask(...recipientsOf(attack)[1], { key: 'add' })
    assert.equal(verdictOf(repeated), 'idempotency_conflict')
    assert.deepEqual(
      (await arrived()).map(([, units]) => units),
      [3_000_000n],
    )

    // The end of a stop is the last way, since the stop ends all others.
    assert.equal((await ask('POST /v1/kill', { on: true })).status, 200)
    assert.deepEqual(await attack.verdicts(['POST /v1/kill', { on: false }], transfers(attack)[0]), [
      'waits',
      'trading_paused',
    ])
  })
const addressesOf = ({ evm, solana: onSolana }: Attack) => ({ evm, solana: onSolana })

type Policy = Record<
  | 'per_day_usd'
  | 'per_transaction_usd'
  | 'approval_above_usd'
  | 'chat_per_day_usd'
  | 'chains'
  | 'tokens'
  | 'recipients',
  unknown
> & { paused: object | null; pending_changes: object[] }
type Lists = {
  policy: Policy
  recipients: { recipient_id: string; chain_id: string; address: string; status: string; agents: string }[]
  agents: { agent_id: string }[]
  webhooks: { url: string; client_id: string | null }[]
  approvals: { approval_id: string; intent: { kind: string } }[]
  outstanding_orders: { id: string; order_kind: string }[]
}
type FileList = { files: { url: string }[] }
type Ask = Attack['ask']

/** What every list of the interface shows of an account and of its linked agent. */
async function listed(ask: Ask, agentId: string) {
  const read = async <Name extends keyof Lists>(name: Name, path: string): Promise<Lists[Name]> => {
    const { status, body } = await ask<Lists>(`GET ${path}`)
    assert.equal(status, 200, JSON.stringify(body))
    return body[name]
  }
  const limits = async (query = '') => {
    const { body } = await ask<Policy>(`GET /v1/policy${query}`)
    const { per_day_usd, per_transaction_usd, approval_above_usd, chat_per_day_usd } = body
    const { chains, tokens, recipients, paused, pending_changes } = body
    return {
      per_day_usd,
      per_transaction_usd,
      approval_above_usd,
      chat_per_day_usd,
      chains,
      tokens,
      recipients,
      isPaused: paused !== null,
      pending_changes,
    }
  }
  const recipients = await read('recipients', '/v1/recipients')
  return {
    limits: await limits(),
    limitsOfAgent: await limits(`?for_agent=${agentId}`),
    recipients: recipients.map(({ address, status, agents }) => ({ address, status, agents })),
    agents: (await read('agents', '/v1/agents')).map(({ agent_id }) => agent_id),
    webhooks: (await read('webhooks', '/v1/webhooks')).map(({ url }) => url),
    waiting: (await read('approvals', '/v1/approvals')).map(({ intent }) => intent.kind).sort(),
    orders: (await read('outstanding_orders', '/wallet/outstanding-orders'))
      .map(({ order_kind }) => order_kind)
      .sort(),
  }
}

/** Calls of an app whose person confirms on the page what waits there. */
function confirmedAsk(connecting: ConnectingPerson, authorization: string): Ask {
  const { ask } = askerOf(gateway.url, authorization)
  const confirmed = confirming(connecting, gateway.url, authorization)
  return async <B>(...given: Parameters<Ask>) => {
    const answer = await confirmed((await ask<B>(...given)) as Answer<B>)
    assert.equal(answer.status, 200, `${given[0]} ${JSON.stringify(answer.body)}`)
    return answer
  }
}

const linkCode = async (agent: Agent): Promise<string> => {
  const { ask } = askerOf(gateway.url, `Bearer ${agent.token}`)
  return (await ask<{ code: string }>('POST /v1/agents/link-codes', signedAct(agent, 'agents_link_code')))
    .body.code
}
const friend = {
  chain_id: base,
  address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
  label: 'Friend',
  agents: 'approval',
}

for (const { stolen, end } of [
  { stolen: 'access token', end: 'disconnect' },
  { stolen: 'refresh token', end: 'sign-out-everywhere' },
])
  test(`what a thief of the ${stolen} has set up ends with "${end}", or is listed to the owner, who undoes it`, async (t) => {
    const attack = await newAttack(stolen === 'refresh token')
    const { person, connecting, connection, ask: steal, token } = attack
    await using receiver = await openReceiver()
    const authorization = `Bearer ${token}`
    const own = await newAgent(gateway.url)
    const asOwner = confirmedAsk(connecting, authorization)
    await asOwner('POST /v1/agents', { code: await linkCode(own), name: 'Bot' })
    await asOwner('POST /v1/recipients', friend)
    await asOwner('POST /v1/swap?wait=true', { ...swap, token_out: 'AERO' })
    const isEffective = async () =>
      (await listed(steal, own.agentId)).recipients.every(({ status }) => status === 'effective')
    await eventually(isEffective, 'the recipient of the owner is effective')
    const before = await listed(steal, own.agentId)
    const money = await balancesOf(world, person)

    const done = async (...requests: Request[]) => {
      const answers = []
      for (const [route, body] of requests) {
        const { status, body: answer } = await steal(route, body)
        assert.equal(status, 200, `${route} ${JSON.stringify(answer)}`)
        answers.push(answer)
      }
      return answers
    }
    const events = sentEvents(
      `${gateway.url}/v1/notifications/stream`,
      { authorization, 'last-event-id': '0' },
      AbortSignal.timeout(120_000),
    )
    assert.ok((await events.next()).value, 'the thief reads the stream')
    const mcp = await sseClient(gateway.url, { authorization })
    t.after(() => mcp[Symbol.asyncDispose]())
    const [recipient] = (await steal<Lists>('GET /v1/recipients')).body.recipients
    const for_agent = own.agentId
    const thief = await newAgent(gateway.url)
    const [asked] = await done(
      ['POST /v1/chat', { query: 'swap 3 usdc to eth on base', stream: false }],
      ['POST /v1/webhooks', { url: receiver.url('/thief') }],
      ['POST /v1/limit-orders', { ...swap, token_out: 'AERO', price_usd_trigger: '0.01', condition: 'lte' }],
      ['POST /v1/hooks', { chain_id: base, token_address: 'AERO', stop_losses: [{ price_usd: '0.01' }] }],
      ['PUT /v1/policy', { per_day_usd: '1', approval_above_usd: '0', chains: [] }],
      ['PUT /v1/policy', { per_day_usd: '1', per_transaction_usd: '1', for_agent }],
      [`DELETE /v1/recipients/${recipient!.recipient_id}`],
      ['POST /v1/kill', { on: true }],
      ['POST /v1/kill', { on: true, for_agent }],
      ['POST /v1/kill', { on: false }],
      ['PUT /v1/policy', { per_day_usd: '5000' }],
      recipientsOf(attack)[0],
      ['POST /v1/agents', { code: await linkCode(thief) }],
      [`DELETE /v1/agents/${for_agent}`],
    )
    await receiver.until(1, '/thief')
    assert.equal(verdictOf(await steal('POST /v1/agents/link-codes', {})), 'validation')
    const { chat_id } = asked as unknown as { chat_id: string }
    type Message = { recommendations: { id: string; status: string }[] }
    const thread = await steal<Message[]>(`GET /v1/chat/threads/${chat_id}`)
    const [recommended] = thread.body.at(-1)!.recommendations
    assert.equal(recommended?.status, 'open')

    const analysed = await steal<FileList & { chat_id: string }>('POST /v1/chat', {
      query: 'draw hype on the 4h',
      agent: 'MarketAnalyzerAgent',
      stream: false,
    })
    const link = await fetch(analysed.body.files[0]!.url)
    assert.equal(link.status, 200, 'the thief has the address of a file')

    const account = await connecting.browser.open(`${gateway.url}/oauth/account`)
    assert.match(account.html, new RegExp(`Sends your events to ${new URL(receiver.url()).host}`))
    await connecting.browser.submit(account, end, { client_id: connection.clientId })

    let last: SentEvent | undefined
    for await (const event of events) last = event
    assert.equal(last?.event, 'error', 'the stream that was open has ended')
    await assert.rejects(mcp.call('tasks_list'))
    assert.deepEqual(
      await attack.verdicts(
        ['GET /v1/holdings'],
        ['GET /oauth/userinfo'],
        [`PATCH /v1/chat/${chat_id}/recommendations/${recommended!.id}`, { status: 'accepted' }],
        ['POST /v1/webhooks', { url: receiver.url('/again') }],
        ['DELETE /wallet/outstanding-orders'],
      ),
      times('invalid_token', 5),
    )
    const refreshed = await refresh(connection, { refresh_token: attack.refreshToken })
    assert.equal(refreshed.error, 'invalid_grant')
    assert.equal((await fetch(link.url)).status, 404)
    const unlinked = askerOf(gateway.url, `Bearer ${thief.token}`)
    assert.equal((await unlinked.ask<{ linked_to: null }>('GET /v1/agents')).body.linked_to, null)

    // The owner connects an app anew, sees all that is left, and takes it back.
    const anew = await connecting.connect({ allows: everyBox, signsIn: true })
    const owner = confirmedAsk(connecting, anew.authorization)
    const left = await listed(owner, for_agent)
    assert.deepEqual(
      { ...left, limits: left.limits.isPaused, limitsOfAgent: left.limitsOfAgent.isPaused },
      {
        limits: true,
        limitsOfAgent: true,
        recipients: [],
        agents: before.agents,
        webhooks: [],
        waiting: ['agents_link', 'agents_unlink', 'policy_kill', 'policy_tighten', 'recipients_add'],
        orders: ['hook', 'limit_order'],
      },
    )
    await eventually(async () => {
      const { body } = await owner<FileList>(`GET /v1/chat/${analysed.body.chat_id}/files`)
      const { status } = await fetch(body.files[0]!.url)
      return status === 200 || undefined
    }, 'the owner reads the file at an address of a later second')
    for (const { approval_id } of await waitingOf({ ask: owner }))
      await connecting.confirm(`${gateway.url}/oauth/approvals/${approval_id}`, 'decline')
    await owner('DELETE /wallet/outstanding-orders')
    await owner(`PATCH /v1/chat/${chat_id}/recommendations/${recommended!.id}`, { status: 'declined' })
    const { per_day_usd, approval_above_usd, chains } = before.limits
    await owner('PUT /v1/policy', { per_day_usd, approval_above_usd, chains })
    const ofAgent = before.limitsOfAgent
    const agentLimits = {
      per_day_usd: ofAgent.per_day_usd,
      per_transaction_usd: ofAgent.per_transaction_usd,
    }
    await owner('PUT /v1/policy', { ...agentLimits, for_agent })
    await owner('POST /v1/kill', { on: false })
    await owner('POST /v1/kill', { on: false, for_agent })
    await owner('POST /v1/recipients', friend)
    await eventually(async () => {
      const now = await listed(owner, for_agent)
      return now.limits.pending_changes.length === 0 && now.recipients[0]?.status === 'effective'
    }, 'what the owner has confirmed counts')
    assert.deepEqual(await listed(owner, for_agent), before)

    // The control: messages of this time have left, and none went to the thief.
    const count = receiver.at('/thief').length
    await owner('POST /v1/webhooks', { url: receiver.url('/owner') })
    await owner('PUT /v1/policy', { per_day_usd: '300' })
    await receiver.until(1, '/owner')
    assert.equal(receiver.at('/thief').length, count)
    assert.deepEqual(await balancesOf(world, person), money)
    const arrived = await balancesOf(world, { ...person, ...addressesOf(attack) })
    assert.ok([...arrived.values()].every((units) => units === 0n))
  })
