/** Three blocks with the transactions of 50 open tasks are reorganised away: every task ends with what the chain then holds. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { query } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { baseId, type ChainsApp, createChainsApp, type User } from './chains-app.ts'

/** More than the blocks of this test before the last one. */
const confirmations = 40
const counts = { deposit: 20, withdraw: 10, recharge: 10, swap: 10 }
type Kind = keyof typeof counts
type Open = { kind: Kind; user: User; id: string }
type Stored = { task_id: string; signer: string; nonce: string; n: number; raw: string; external_id: string }
const vaultUnits = 100_000_000n
const packUnits = 2_857_142_857_142_858n

describe('a reorganisation of three blocks', () => {
  let app: ChainsApp
  const mine = (blocks = 1) => app.rpc('anvil_mine', [`0x${blocks.toString(16)}`])
  before(async () => {
    app = await createChainsApp(
      { adjustChain: (row) => (row.id === baseId ? { ...row, confirmations } : row) },
      { swaps: true },
    )
    await mine(2 * confirmations)
  })
  after(() => app?.[Symbol.asyncDispose]())

  const inputs: Record<Kind, [operation: string, input: object]> = {
    deposit: ['earn_deposit', { amount_usdc: '100' }],
    withdraw: ['earn_withdraw', {}],
    recharge: ['credits_recharge', { chain_id: baseId, pack_id: '10' }],
    swap: [
      'swap_execute',
      { chain_id_in: baseId, token_in: 'USDC', token_out: 'WETH', amount: '30000000', slippage_bps: 500 },
    ],
  }
  const find = ({ user, id }: Open) => app.main.taskEngine.tasks.find(user.id, id)
  const storedOf = (open: readonly Open[]) =>
    query<Stored>(
      app.database.pool,
      `select e.task_id, a.signer, a.nonce, a.n, a.raw, a.external_id from tx_attempt a
       join effect e on e.id = a.effect_id where e.task_id = any($1::uuid[]) order by a.signer, a.nonce, a.n`,
      [open.map(({ id }) => id)],
    )
  const receiptOf = async (hash: string) =>
    (await app.rpc('eth_getTransactionReceipt', [hash])) as { status: string; blockNumber: string } | null
  const nativeOf = async ({ evm }: User) =>
    BigInt((await app.rpc('eth_getBalance', [evm, 'latest'])) as string)
  const usdcOf = async ({ evm }: User) => (await app.main.vault.account(evm)).cashUnits
  const sharesOf = async ({ evm }: User) => (await app.main.vault.account(evm)).sharesUnits
  const purchased = async (user: User) =>
    (await app.main.features.credits.buckets(app.database.pool, user.id)).find(
      ({ kind }) => kind === 'purchased',
    )?.credits ?? 0n

  /** A user for each task, so that the chain alone says what became of it. */
  async function openTasks(): Promise<Open[]> {
    const people: { kind: Kind; user: User }[] = []
    for (const kind of Object.keys(counts) as Kind[])
      for (let n = 0; n < counts[kind]; n++) people.push({ kind, user: await app.fundedUser('1000') })
    for (const { user } of people.filter(({ kind }) => kind === 'recharge'))
      await app.fund(baseId, user.evm, 'native', '0.1')
    const savers = people.filter(({ kind }) => kind === 'withdraw').map(({ user }) => user)
    const saved = savers.map((user) =>
      app.call('earn_deposit', { amount_usdc: '100' }, user, { timeoutMs: 60_000 }),
    )
    const isMining = eventually(
      async () => {
        await mine(10)
        const { rows } = await app.database.pool.query(
          "select 1 from task where kind = 'earn_deposit' and status in ('pending', 'running')",
        )
        return rows.length === 0 && (await app.flows(savers.at(-1)!)) === 1 ? true : undefined
      },
      'the positions are open',
      60_000,
    )
    for (const done of await Promise.all(saved)) assert.equal(done.outcome, 'executed', JSON.stringify(done))
    await isMining
    await app.rpc('evm_setAutomine', [false])
    const open: Open[] = []
    // Three waves, of which each is in a block of its own.
    for (let wave = 0; wave < 3; wave++) {
      const own = people.filter((_, index) => index % 3 === wave)
      await Promise.all(
        own.map(async ({ kind, user }) => {
          const [operation, input] = inputs[kind]
          const position = kind === 'withdraw' && (await app.call('earn_positions', {}, user)).positions[0]
          const given = position ? { position_id: position.id, amount_usdc: null } : input
          const { task_id: id } = await app.call(operation, given, user, { wait: false })
          open.push({ kind, user, id })
        }),
      )
      await eventually(
        async () => {
          const hashes = await storedOf(open)
          const known = await Promise.all(
            hashes.map(({ external_id }) => app.rpc('eth_getTransactionByHash', [external_id])),
          )
          return hashes.length === open.length && known.every((each) => each !== null) ? true : undefined
        },
        'the node has every transaction',
        60_000,
      )
      await mine()
    }
    return open
  }

  test('50 open tasks of four kinds follow the chain, and nothing is doubled', async (t) => {
    const open = await openTasks()
    const total = open.length
    assert.equal(total, 50)
    const stored = await storedOf(open)
    const first = await Promise.all(stored.map(({ external_id }) => receiptOf(external_id)))
    assert.ok(first.every((receipt) => receipt?.status === '0x1'))
    await eventually(
      async () =>
        (await Promise.all(open.map(find))).every(({ state }) => state === 'confirming') ? true : undefined,
      'every task has seen its block',
      30_000,
    )
    assert.ok((await Promise.all(open.map(find))).every(({ completed_at }) => completed_at === null))

    // A public node takes half of them back into its pool; the others are lost with their blocks.
    const blocks = first.map((receipt) => Number(receipt!.blockNumber))
    assert.ok(new Set(blocks).size >= 3)
    const poor = open.filter(({ kind }) => kind === 'recharge').slice(0, 2)
    // Foreign bytes take the nonce of one of them.
    const victim = stored.find(({ task_id }) => open.find(({ id }) => id === task_id)?.kind === 'deposit')!
    const { chain, sponsor } = app.main.base
    const { maxFeeWei, priorityWei } = await sponsor.fees()
    const fees = { maxFeeWei: maxFeeWei * 20n, priorityWei: priorityWei * 20n }
    const foreign = await sponsor.replace(victim.raw, victim.signer, { kind: 'cancel', fees })
    // The world mines an empty block where the head is old: the three go with what came after them.
    const head = Number(await app.rpc('eth_blockNumber', []))
    await app.rpc('anvil_reorg', [head - Math.min(...blocks) + 1, []])
    await Promise.all(poor.map(({ user }) => app.rpc('anvil_setBalance', [user.evm, '0x0'])))
    const gone = await Promise.all(stored.map(({ external_id }) => receiptOf(external_id)))
    assert.ok(gone.every((receipt) => receipt === null))
    await chain.sendRaw(foreign.raw)
    for (const { raw, task_id } of stored.filter((_, index) => index % 2 === 0))
      if (task_id !== victim.task_id) await chain.sendRaw(raw)

    await app.rpc('evm_setAutomine', [true])
    const isPoor = ({ user }: Open) => poor.some((each) => each.user.id === user.id)
    const ended = await eventually(
      async () => {
        await mine(5)
        const tasks = await Promise.all(open.map(find))
        return tasks.every(({ completed_at }) => completed_at !== null) ? tasks : undefined
      },
      'every task has ended',
      60_000,
    )
    const outcomes: Record<string, number> = {}
    for (const [index, each] of open.entries()) {
      const { kind, user } = each
      const { outcome, error, result } = ended[index]!
      const what = `${kind} ${outcome} ${JSON.stringify(error ?? result)}`
      outcomes[`${kind} ${outcome}`] = (outcomes[`${kind} ${outcome}`] ?? 0) + 1
      const isExecuted = outcome === 'executed'
      assert.equal(isExecuted, !isPoor(each), what)
      const flows = await app.flows(user)
      if (kind === 'deposit') {
        assert.equal(flows, 1, what)
        assert.equal(await usdcOf(user), 1_000_000_000n - vaultUnits, what)
        assert.equal(String(await sharesOf(user)), result?.shares_delta, what)
      }
      if (kind === 'withdraw') {
        assert.equal(flows, 2, what)
        assert.equal(await sharesOf(user), 0n, what)
      }
      if (kind === 'recharge') {
        assert.equal(await purchased(user), isExecuted ? 650n : 0n, what)
        if (isExecuted) assert.equal(await nativeOf(user), 100_000_000_000_000_000n - packUnits, what)
      }
      if (kind === 'swap') {
        assert.equal(await usdcOf(user), 970_000_000n, what)
        const { tokens } = await chain.balances(user.evm, [wethOf()])
        assert.equal(String(tokens[0]), result?.amount_out, what)
      }
    }
    // The results name transactions that the chain holds.
    for (const { result, outcome } of ended) {
      if (outcome !== 'executed') continue
      const receipt = await receiptOf(String(result?.tx_hash))
      assert.equal(receipt?.status, '0x1')
    }
    const moved = (await storedOf(open)).filter(({ task_id }) => task_id === victim.task_id)
    assert.ok(moved.length > 1 && BigInt(moved.at(-1)!.nonce) > BigInt(victim.nonce), 'another nonce')
    assert.equal(await ledgerDrift(app.database.pool), 0)
    t.diagnostic(JSON.stringify(outcomes))
  })

  const wethOf = () => app.main.base.chain.row.tokens.find(({ symbol }) => symbol === 'WETH')!.address
})
