/** What the data folder of a release has when it is saved, and what a later release must make of it. */
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { assertAllConserved, testFunding } from '../harness/conservation.ts'
import { eventually, freshToken, type Gateway } from '../harness/gateway.ts'
import { createFundedPerson, type Person, personOf, type TaskBody } from '../journeys/users.ts'
import { arbitrum, base, polygon, solana, type World, worldOf } from '../journeys/world.ts'

type Request = { name: string; route: string; body: object }
type SavedTask = Request & { key: string; id: string }
/** What no open task changes. */
type View = { positions: unknown[]; orders: unknown[]; hooks: unknown[]; venue: unknown }
export type Expected = {
  savedAtMs: number
  agentId: string
  /** PKCS 8, base64. */
  privateKey: string
  publicKey: string
  done: SavedTask[]
  open: SavedTask[]
  /** Of every unfinished task, those that the gateway began itself too. */
  openIds: string[]
  view: View
}

const nativeGrant = { chain: arbitrum, amount: '1' } as const

const requestsDone: Request[] = [
  { name: 'a deposit', route: 'POST /v1/earn/deposit', body: { amount_usdc: '100' } },
  { name: 'a deposit that is drawn on', route: 'POST /v1/earn/deposit', body: { amount_usdc: '60' } },
  {
    name: 'a swap with a stop and a profit',
    route: 'POST /v1/swap',
    body: {
      chain_id_in: base,
      token_in: 'USDC',
      token_out: 'AERO',
      amount: '60000000',
      stop_loss: { price_percentage: '0.6' },
      take_profit: [{ price_percentage: '5' }],
    },
  },
  {
    name: 'a limit order',
    route: 'POST /v1/limit-orders',
    body: {
      chain_id_in: base,
      token_in: 'USDC',
      token_out: 'AERO',
      amount: '30000000',
      price_usd_trigger: '0.01',
      condition: 'lte',
    },
  },
  { name: 'a funding of the venue', route: 'POST /v1/perp/fund', body: { amount_usd: '300' } },
  { name: 'the setup at the venue', route: 'POST /v1/perp/setup', body: {} },
  {
    name: 'a position',
    route: 'POST /v1/perp/open',
    body: { asset: 'BTC', side: 'long', size: '0.001' },
  },
  { name: 'its stop', route: 'POST /v1/perp/tp-sl', body: { asset: 'BTC', sl_price: '10000' } },
  {
    name: 'an order in the book',
    route: 'POST /v1/perp/open',
    body: { asset: 'ETH', side: 'long', order_type: 'limit', limit_price: '1000', size: '0.02' },
  },
  {
    name: 'a spot order in the book',
    route: 'POST /v1/spot_venue/buy',
    body: { asset: 'HYPE', order_type: 'limit', limit_price: '20', size: '1' },
  },
]

/** The provider has not delivered yet. */
const bridge: Request = {
  name: 'a bridge',
  route: 'POST /v1/swap',
  body: { chain_id_in: '1', chain_id_out: base, token_in: 'USDC', token_out: 'USDC', amount: '40000000' },
}

/** Signed; the nodes take no transactions. */
const requestsSigned = (positionId: string): Request[] => [
  { name: 'an open deposit', route: 'POST /v1/earn/deposit', body: { amount_usdc: '25' } },
  {
    name: 'an open withdrawal',
    route: 'POST /v1/earn/withdraw',
    body: { position_id: positionId, amount_usdc: '10' },
  },
  {
    name: 'an open swap',
    route: 'POST /v1/swap',
    body: { chain_id_in: polygon, token_in: 'USDC', token_out: 'LINK', amount: '20000000' },
  },
  {
    name: 'an open swap on Solana',
    route: 'POST /v1/swap',
    body: { chain_id_in: solana, token_in: 'USDC', token_out: 'JUP', amount: '20000000' },
  },
  { name: 'an open funding', route: 'POST /v1/perp/fund', body: { amount_usd: '50' } },
  {
    name: 'an open purchase of credits',
    route: 'POST /credits/onchain-recharge',
    body: { chain_id: arbitrum, pack_id: '5' },
  },
  {
    name: 'an open purchase by an order',
    route: 'POST /v1/limit-orders',
    body: {
      chain_id_in: polygon,
      token_in: 'USDC',
      token_out: 'LINK',
      amount: '15000000',
      price_usd_trigger: '1000000',
      condition: 'lte',
    },
  },
]

type Body = TaskBody & { task_id?: string; limit_order_id?: string }

const post = async (
  person: Person,
  request: Request,
  query: string,
): Promise<SavedTask & { body: object }> => {
  const key = `saved-${request.name.replaceAll(' ', '-')}`
  const { status, body } = await person.call<Body>(`${request.route}${query}`, { body: request.body, key })
  assert.ok(status < 300, `${request.name}: ${status} ${JSON.stringify(body)}`)
  const id = body.task_id ?? body.limit_order_id
  if (query && body.task_id)
    assert.ok(
      body.outcome === 'executed' || body.outcome === 'already_done',
      `${request.name}: ${JSON.stringify(body)}`,
    )
  return { ...request, key, id: String(id) }
}

const unfinished = async (person: Person): Promise<TaskBody[]> => {
  const pages = await Promise.all(
    ['pending', 'running'].map((status) =>
      person.call<{ items: TaskBody[] }>(`GET /v1/tasks?limit=100&status=${status}`),
    ),
  )
  return pages.flatMap(({ body }) => body.items)
}

const depositedPosition = async (person: Person, { id }: SavedTask): Promise<string> =>
  (await person.task(id)).result.position_id

/** Fields that no open task changes. */
const viewOf = async (person: Person, done: readonly SavedTask[]): Promise<View> => {
  const positionId = await depositedPosition(person, done[0]!)
  const orderId = done.find(({ name }) => name === 'a limit order')?.id
  const rows = async (route: string, list?: string) => {
    const { body } = await person.call<Record<string, Record<string, unknown>[]>>(route)
    return (list === undefined ? body : body[list]) as Record<string, unknown>[]
  }
  const pick = (from: Record<string, unknown>[], ...names: string[]) =>
    from
      .map((row) => names.map((name) => row[name]))
      .sort((one, two) => String(one[0]).localeCompare(String(two[0])))
  const positions = await rows('GET /v1/earn/positions', 'positions')
  const orders = await rows('GET /v1/limit-orders')
  const outstanding = await rows('GET /wallet/outstanding-orders', 'outstanding_orders')
  const perp = await person.call<Record<string, Record<string, unknown>[]>>('GET /v1/perp/orders')
  const spot = await person.call<Record<string, Record<string, unknown>[]>>('GET /v1/spot_venue/orders')
  return {
    positions: pick(
      positions.filter(({ id }) => id === positionId),
      'id',
      'status',
      'shares',
      'amount_deposited_usdc',
    ),
    orders: pick(
      orders.filter(({ limit_order_id }) => limit_order_id === orderId),
      'limit_order_id',
      'status',
      'amount',
    ),
    hooks: pick(
      outstanding.filter(({ order_kind }) => order_kind === 'hook'),
      'id',
      'status',
      'trigger_price_usd',
      'amount',
    ),
    venue: {
      positions: pick(perp.body.positions!, 'asset', 'side', 'size', 'entry_price'),
      orders: pick(perp.body.orders!, 'order_id', 'status', 'size'),
      spot: pick(spot.body.orders!, 'order_id', 'status', 'size'),
    },
  }
}

const takesNoTransactions = (world: World) =>
  Promise.all([
    ...[base, polygon, arbitrum].map((chain) =>
      world.fault(`evm:${chain}`, { status: 503, methods: ['eth_sendRawTransaction'] }),
    ),
    world.fault('solana', { status: 503, methods: ['sendTransaction'] }),
  ])

/** Leaves open tasks of each kind that can be caught, positions and orders; the gateway is stopped right after it. */
export async function fillFolder(gateway: Gateway, control: string): Promise<Expected> {
  const person = await createFundedPerson(gateway.url)
  const world = await worldOf(control)
  await world.fund(nativeGrant.chain, person.evm, 'native', nativeGrant.amount)
  const done: SavedTask[] = []
  for (const request of requestsDone) done.push(await post(person, request, '?wait=true&timeout=60'))
  const [first, second] = [
    await depositedPosition(person, done[0]!),
    await depositedPosition(person, done[1]!),
  ]

  await world.solver('/realism', { fillLag: 40_000 })
  const open = [await post(person, bridge, '')]
  await eventually(
    async () => (await person.task(open[0]!.id)).state === 'settling' || undefined,
    'the deposit of the bridge is final',
  )
  await takesNoTransactions(world)
  for (const request of requestsSigned(second)) open.push(await post(person, request, ''))
  await eventually(async () => {
    const { body } = await person.call<{ task_id: string | null }>(`GET /v1/limit-orders/${open.at(-1)!.id}`)
    return body.task_id !== null || undefined
  }, 'the order has fired')
  const openIds = (await unfinished(person)).map(({ task_id }) => task_id)
  return {
    savedAtMs: Date.now(),
    agentId: person.agentId,
    privateKey: person.privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64'),
    publicKey: person.publicKey,
    done,
    open,
    openIds,
    view: await viewOf(person, done),
  }
}

/** The open tasks end as ordered, old keys replay, and positions, orders and sums are the same. */
export async function checkFolder(gateway: Gateway, control: string, expected: Expected): Promise<void> {
  const { agentId, publicKey, done, open, openIds, view } = expected
  const privateKey = createPrivateKey({
    key: Buffer.from(expected.privateKey, 'base64'),
    format: 'der',
    type: 'pkcs8',
  })
  const token = await freshToken(gateway.url, agentId, privateKey, expected.savedAtMs + 30_000)
  const person = await personOf(gateway.url, { agentId, publicKey, privateKey, token })
  for (const id of openIds) {
    const { kind, status, outcome, error } = await person.ended(id, 120_000)
    assert.deepEqual([kind, status, outcome], [kind, 'completed', 'executed'], JSON.stringify(error))
  }
  for (const { name, route, body, key, id } of [...done, ...open]) {
    const again = await person.call<Body>(`${route}?wait=true`, { body, key })
    assert.equal(again.headers.get('idempotent-replayed'), 'true', `${name}: ${JSON.stringify(again.body)}`)
    assert.equal(again.body.task_id ?? again.body.limit_order_id, id, name)
  }
  assert.deepEqual(await viewOf(person, done), view)
  testFunding.add(
    { evm: person.evm },
    {
      asset: `gas:${nativeGrant.chain}`,
      units: 10n ** 18n,
      why: 'it was granted before the folder was saved',
    },
  )
  await assertAllConserved({ url: gateway.url, control }, [async () => ({ token, evm: person.evm })])
}
