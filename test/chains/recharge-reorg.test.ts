/** A payment for credits counts once it is final: blocks that are reorganised away credit nothing. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { query } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { type Answer, baseId, type ChainsApp, createChainsApp, type User } from './chains-app.ts'

/** More than the blocks that the passing of time adds. */
const confirmations = 40

describe('a payment in blocks that are reorganised', () => {
  let app: ChainsApp
  before(async () => {
    app = await createChainsApp({
      adjustChain: (row) => (row.id === baseId ? { ...row, confirmations } : row),
    })
  })
  after(() => app?.[Symbol.asyncDispose]())

  const payer = async (): Promise<User> => {
    const user = await app.addUser()
    await app.fund(baseId, user.evm, 'native', '0.1')
    await app.rpc('anvil_mine', ['0x40'])
    return user
  }
  const creditsOf = (user: User) => app.main.features.credits.buckets(app.database.pool, user.id)
  const purchased = async (user: User): Promise<bigint> =>
    (await creditsOf(user)).find(({ kind }) => kind === 'purchased')?.credits ?? 0n
  const start = async (user: User): Promise<string> =>
    (await app.call('credits_recharge', { chain_id: baseId, pack_id: '10' }, user, { wait: false })).task_id
  const find = (user: User, id: string) => app.main.taskEngine.tasks.find(user.id, id)
  const mined = (user: User, id: string) =>
    eventually(
      async () => {
        const { state, data } = await find(user, id)
        const [transaction] = (data.transactions ?? []) as { status: string; block: number | null }[]
        return state === 'confirming' && transaction?.status === 'confirmed' ? transaction : undefined
      },
      'the payment is in a block',
      20_000,
    )
  const paymentsOf = (id: string) =>
    query<{ state: string }>(app.database.pool, 'select state from credit_payment where task_id = $1', [id])

  test('it credits nothing before it is final, and once when it returns in another block', async () => {
    const user = await payer()
    const id = await start(user)
    await mined(user, id)
    assert.equal(await purchased(user), 0n)
    const hash = (await find(user, id)).data.transactions as { tx_hash: string }[]
    const receipt = () => app.rpc('eth_getTransactionReceipt', [hash[0]!.tx_hash])
    const removal = app.control('POST', `/chains/${baseId}/reorg`, { depth: 2, remine_after_ms: 1_500 })
    await eventually(async () => ((await receipt()) === null ? true : undefined), 'the payment is gone')
    assert.equal(await purchased(user), 0n)
    await removal
    await eventually(async () => ((await receipt()) === null ? undefined : true), 'the payment is back')
    assert.equal(await purchased(user), 0n)
    await app.rpc('anvil_mine', [`0x${confirmations.toString(16)}`])
    const task = await app.ended(user, id)
    assert.deepEqual([task.status, task.outcome], ['completed', 'executed'])
    assert.equal(await purchased(user), 650n)
    assert.deepEqual(
      (await paymentsOf(id)).map(({ state }) => state),
      ['credited'],
    )
  })

  test('blocks that never return credit nothing until the payment is sent again, and then once', async () => {
    const user = await payer()
    const balance = async () => BigInt((await app.rpc('eth_getBalance', [user.evm, 'latest'])) as string)
    const before = await balance()
    const id = await start(user)
    await mined(user, id)
    await app.control('POST', `/chains/${baseId}/reorg`, { depth: 1 })
    assert.equal(await purchased(user), 0n)
    const task = await eventually(
      async () => {
        await app.rpc('evm_mine')
        const now = await find(user, id)
        return now.completed_at ? now : undefined
      },
      'the payment is sent again and final',
      60_000,
    )
    const { paid } = task.result as Answer['result']
    assert.deepEqual([task.status, task.outcome], ['completed', 'executed'])
    assert.equal(await purchased(user), 650n)
    assert.equal(before - (await balance()), BigInt(paid))
    assert.equal((await paymentsOf(id)).length, 1)
  })
})
