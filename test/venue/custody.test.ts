import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createAgentCache } from '#engines/custody/agent-key-cache.ts'
import { addAgent, agentsOf, approveAgent, retireAgent } from '#engines/custody/agent-key-store.ts'
import { createKeyEncryptionKeys } from '#engines/custody/key-encryption-keys.ts'
import { createCustodySigner } from '#engines/custody/signer.ts'
import { sealedWallet } from '#engines/custody/wallet-store.ts'
import { createReceipts } from '#features/policy/receipt.ts'
import { later } from '#kernel/clock.ts'
import { isAgentAction, type VenueAction, type VenueOrder } from '#kernel/money/venue-actions.ts'
import { intentHash, type VenueIntent } from '#kernel/task/signer.ts'
import { builder, fetchAll } from '#store/query.ts'
import { evmCrypto } from '#upstreams/evm/custody-crypto.ts'
import { hyperliquidCrypto } from '#upstreams/hyperliquid/lazy-signing.ts'
import { createIdentityApp, faultOf, type IdentityApp, newKek } from '../identity/identity-app.ts'
import { newTask, stranger } from '../identity/intents.ts'

/** A compromised policy issues receipts for anything; custody still enforces its own rules. */

const venue = 'hyperliquid'
const first = newKek('first')

describe('custody at the venue', () => {
  let app: IdentityApp
  before(async () => {
    app = await createIdentityApp({ keyEncryptionKeys: createKeyEncryptionKeys(first) })
  })
  after(() => app[Symbol.asyncDispose]())

  const taken = createReceipts()
  const signer = () =>
    createCustodySigner({
      assertFree: () => {},
      db: app.db,
      keystore: app.keystore,
      crypto: evmCrypto,
      chains: [],
      clock: app.clock,
      isAuthentic: taken.isAuthentic,
      venues: [{ venue, chainId: '999', maxMicros: 1_000_000_000n, crypto: hyperliquidCrypto('local') }],
    })

  const newcomer = async () => {
    const { userId } = await app.auth.authenticate(`Bearer ${await app.token(await app.register())}`)
    const own = (await sealedWallet(app.db, userId, 'evm'))!.address
    const sealed = await app.keystore.prepareAgent(userId, venue)
    await addAgent(app.db, sealed)
    return { userId, own, agent: sealed.address }
  }
  type User = Awaited<ReturnType<typeof newcomer>>

  const entry: VenueOrder = {
    asset: 0,
    isBuy: true,
    price: '100000',
    size: '0.001',
    reduceOnly: false,
    when: { tif: 'ioc' },
    cloid: `0x${'1'.repeat(32)}`,
  }
  const stop: VenueOrder = {
    ...entry,
    isBuy: false,
    price: '85500',
    reduceOnly: true,
    cloid: `0x${'2'.repeat(32)}`,
    when: { triggerPrice: '95000', leg: 'sl', isMarket: true },
  }
  /** The first spot market. */
  const spot = 10_000
  const order = (...orders: VenueOrder[]): VenueAction => ({ type: 'order', orders, grouping: 'none' })

  const intentOf = (user: User, action: VenueAction, change: Partial<VenueIntent> = {}): VenueIntent => {
    const nowMs = app.clock.now().getTime()
    const byAgent = ['order', 'cancel', 'set_leverage'].includes(action.type)
    return {
      type: 'venue_action',
      venue,
      chainId: '999',
      userId: user.userId,
      taskId: newTask(app),
      operation: 'perp_open',
      tokens: [],
      recipients: [],
      usdMicros: 100_000_000n,
      exit: false,
      account: user.own,
      signer: byAgent ? user.agent : user.own,
      action,
      nonce: BigInt(nowMs),
      expiresAtMs: byAgent ? nowMs + 20_000 : null,
      ...change,
    }
  }
  const sign = (intent: VenueIntent) => {
    const { userId, taskId } = intent
    const expiresAt = later(app.clock.now(), 60_000)
    const facts = { id: newTask(app), userId, taskId, intentHash: intentHash(intent), expiresAt }
    return signer()
      .venueKeys({ userId, venue: intent.venue, byAgent: isAgentAction(intent.action) })
      .sign(intent, taken.make(facts))
  }
  const ruleOf = async (intent: VenueIntent) => {
    const { code, extras } = await faultOf(sign(intent))
    assert.equal(code, 'policy_denied')
    return extras.rule
  }

  test('an order, its exits and the other trading actions are signed', async () => {
    const user = await newcomer()
    const exit = { exit: true, usdMicros: 0n }
    const good: VenueIntent[] = [
      intentOf(user, order(entry, stop)),
      intentOf(user, order(stop), exit),
      // On spot a sale is an exit, with any flags.
      intentOf(user, order({ ...entry, asset: spot, isBuy: false }), exit),
      intentOf(user, order({ ...entry, asset: spot }, { ...stop, asset: spot })),
      intentOf(user, { type: 'cancel', cancels: [{ asset: 0, orderId: 7 }] }, exit),
      intentOf(user, { type: 'set_leverage', asset: 0, isCross: true, leverage: 5 }),
      intentOf(user, { type: 'approve_agent', agent: user.agent, name: 'portico' }),
      intentOf(user, { type: 'withdraw', destination: user.own.toLowerCase(), amount: '10' }, exit),
      intentOf(user, { type: 'move_cash', amount: '10', to: 'perp' }),
    ]
    for (const intent of good) assert.equal(JSON.parse(await sign(intent)).nonce, Number(intent.nonce))
  })

  test('every action outside the rules of custody is denied by its rule', async () => {
    const [user, other] = await Promise.all([newcomer(), newcomer()])
    const nowMs = app.clock.now().getTime()
    const day = 86_400_000
    const bad: [string, VenueIntent][] = [
      ['venue', intentOf(user, order(entry), { chainId: '1' })],
      ['account', intentOf(user, order(entry), { account: other.own })],
      ['signer', intentOf(user, order(entry), { signer: user.own })],
      ['signer', intentOf(user, order(entry), { signer: other.agent })],
      [
        'signer',
        intentOf(user, { type: 'withdraw', destination: user.own, amount: '1' }, { signer: user.agent }),
      ],
      ['nonce', intentOf(user, order(entry), { nonce: BigInt(nowMs + 2 * day) })],
      ['nonce', intentOf(user, order(entry), { nonce: BigInt(nowMs - 2 * day) })],
      ['expiry', intentOf(user, order(entry), { expiresAtMs: null })],
      ['expiry', intentOf(user, order(entry), { expiresAtMs: nowMs - 1 })],
      ['expiry', intentOf(user, order(entry), { expiresAtMs: nowMs + day })],
      ['orders', intentOf(user, order())],
      ['size', intentOf(user, order({ ...entry, size: '0' }))],
      ['size', intentOf(user, order({ ...entry, size: '0.0010' }))],
      ['size', intentOf(user, order({ ...entry, price: '-1' }))],
      ['trigger', intentOf(user, order(entry, { ...stop, reduceOnly: false }))],
      ['notional', intentOf(user, order({ ...entry, size: '0.0011' }))],
      ['notional', intentOf(user, order(entry, { ...entry, size: '0.00001' }))],
      ['cap', intentOf(user, order({ ...entry, size: '0.011' }), { usdMicros: 10_000_000_000n })],
      ['exit', intentOf(user, order(entry), { exit: true })],
      // The venue ignores the flag there, so custody does too; from 100,000 on the ids are perpetuals again.
      ['exit', intentOf(user, order({ ...entry, asset: spot, reduceOnly: true }), { exit: true })],
      ['trigger', intentOf(user, order(entry, { ...stop, asset: spot, isBuy: true }))],
      ['exit', intentOf(user, order({ ...entry, asset: 100_000, isBuy: false }), { exit: true })],
      ['destination', intentOf(user, { type: 'withdraw', destination: stranger, amount: '10' })],
      ['size', intentOf(user, { type: 'withdraw', destination: user.own, amount: '0' })],
      ['agent', intentOf(user, { type: 'approve_agent', agent: stranger, name: 'portico' })],
      ['agent', intentOf(user, { type: 'approve_agent', agent: other.agent, name: 'portico' })],
    ]
    for (const [rule, intent] of bad)
      assert.equal(await ruleOf(intent), `signer_${rule}`, JSON.stringify(intent.action))
  })

  test('a revoked key never signs again', async () => {
    const user = await newcomer()
    const whose = { userId: user.userId, venue }
    const now = app.clock.now()
    const approve = (address: string) =>
      app.transact((tx) => approveAgent(tx, whose, { address, expiresAt: later(now, 1_000), now }))
    await approve(user.agent)
    await sign(intentOf(user, order(entry)))
    const next = await app.keystore.prepareAgent(user.userId, venue)
    await addAgent(app.db, next)
    // Another one that is created in the meantime is dropped unused.
    await addAgent(app.db, await app.keystore.prepareAgent(user.userId, venue))
    const before = await agentsOf(app.db, whose)
    assert.deepEqual([before.current?.address, before.waiting?.address], [user.agent, next.address])
    await approve(next.address)
    assert.equal(await ruleOf(intentOf(user, order(entry))), 'signer_signer')
    await sign(intentOf(user, order(entry), { signer: next.address }))
    await retireAgent(app.db, whose, { address: next.address, now })
    assert.deepEqual(await agentsOf(app.db, whose), { current: undefined, waiting: undefined })
    assert.equal(await ruleOf(intentOf(user, order(entry), { signer: next.address })), 'signer_signer')
  })

  test('the cache keeps the agents of a user briefly, and nothing while they change', async () => {
    const user = await newcomer()
    const whose = { userId: user.userId, venue }
    const book = createAgentCache(60_000)
    const addresses = async () => (await book.cached(app.db, whose)).map(({ address }) => address)
    assert.deepEqual(await addresses(), [user.agent])
    await retireAgent(app.db, whose, { address: user.agent, now: app.clock.now() })
    assert.deepEqual(await addresses(), [user.agent], 'written elsewhere')
    book.invalidate(whose)
    assert.deepEqual(await addresses(), [])
    await addAgent(app.db, await app.keystore.prepareAgent(user.userId, venue))
    assert.equal((await addresses()).length, 1, 'for a moment every read goes to the database')
    assert.deepEqual(await book.cached(app.db, { ...whose, userId: newTask(app) }), [])
  })

  test('a rotation of the key-encryption key rewraps the keys of agents', async () => {
    const user = await newcomer()
    const second = newKek('second')
    const rotated = await app.instance({ keyEncryptionKeys: createKeyEncryptionKeys(second, first) })
    for (let next: string | null = null, begun = false; next !== null || !begun; begun = true)
      ({ next } = await rotated.keystore.rewrap(app.db, { after: next, limit: 2 }))
    const rows = await fetchAll(app.db, builder.selectFrom('agent_wallet').select('kek_id'))
    assert.deepEqual([...new Set(rows.map(({ kek_id }) => kek_id))], ['second'])
    const alone = await app.instance({ keyEncryptionKeys: createKeyEncryptionKeys(second) })
    const [sealed] = await fetchAll(
      app.db,
      builder.selectFrom('agent_wallet').selectAll().where('address', '=', user.agent),
    )
    const address = await alone.keystore.withAgentKey(sealed!, async (secret) => evmCrypto.addressOf(secret))
    assert.equal(address, user.agent)
    const moved = { ...sealed!, venue: 'elsewhere' }
    await assert.rejects(alone.keystore.withAgentKey(moved, async () => undefined))
  })
})
