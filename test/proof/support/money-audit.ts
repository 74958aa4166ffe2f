/** A user's funds on the chain and according to the tasks: two sums that must agree. */
import assert from 'node:assert/strict'
import { type Agent, bearer, eventually, type Gateway, http } from '../../harness/gateway.ts'

const vaultAddress = '0xea12000000000000000000000000000000008453'
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
const faucetGrantUnits = 10_000_000_000n
const baseId = '8453'

type Task = {
  task_id: string
  kind: string
  status: string
  outcome: string | null
  result: { amount_usdc_decimal: string; shares_delta: string; position_id: string } | null
}
type Holdings = { cash: string; shares: string }

export type MoneyAudit = {
  /** Makes a small deposit, so that a task and a position exist. */
  start(options?: { again?: boolean }): Promise<{ task_id: string; position_id: string }>
  /** The number of tasks that have not ended. */
  open(): Promise<number>
  tasks(): Promise<Task[]>
  /** The expected wallet balance by the tasks, and the balance on the chain. */
  account(): Promise<{ reported: Holdings; recorded: Holdings }>
  onChain(): Promise<Holdings>
}

const moving = new Set(['earn_deposit', 'earn_withdraw'])
const unitsOf = (decimal: string): bigint => {
  const [whole = '0', fraction = ''] = decimal.split('.')
  return BigInt(whole + fraction.padEnd(6, '0'))
}

/** Reads the node directly, past all caches of the gateway. */
export async function balanceOf(rpc: string, token: string, owner: string): Promise<bigint> {
  const data = `0x70a08231${owner.slice(2).toLowerCase().padStart(64, '0')}`
  const body = { jsonrpc: '2.0', id: 1, method: 'eth_call', params: [{ to: token, data }, 'latest'] }
  const answer = await http<{ result: string }>(rpc, { method: 'POST', body })
  return BigInt(answer.body.result)
}

export async function baseRpc(world: string): Promise<string> {
  const { body } = await http<{ urls: { evm: Record<string, string> } }>(`${world}/`)
  const url = body.urls.evm[baseId]
  assert.ok(url, JSON.stringify(body))
  return url
}

export async function createMoneyAudit(
  gateway: Pick<Gateway, 'url'> & { world: string },
  agent: Agent,
): Promise<MoneyAudit> {
  const rpc = await baseRpc(gateway.world)
  const get = async <B>(path: string) =>
    (await http<B>(`${gateway.url}${path}`, { headers: bearer(agent) })).body
  const { wallets } = await get<{ wallets: { address: string; chain_type: string }[] }>('/v1/wallets')
  const owner = wallets.find(({ chain_type }) => chain_type === 'evm')!.address

  const onChain = async (): Promise<Holdings> => ({
    cash: String(await balanceOf(rpc, usdc, owner)),
    shares: String(await balanceOf(rpc, vaultAddress, owner)),
  })
  const tasks = async (): Promise<Task[]> => {
    const all: Task[] = []
    for (let skip = 0; ; skip += 100) {
      const { items } = await get<{ items: Task[] }>(`/v1/tasks?limit=100&skip=${skip}`)
      all.push(...items)
      if (items.length < 100) return all
    }
  }
  return {
    onChain,
    tasks,
    async start({ again = false } = {}) {
      const waitForFaucetGrant = async () =>
        (await onChain()).cash === String(faucetGrantUnits) ? true : undefined
      if (!again) await eventually(waitForFaucetGrant, 'the grant in USDC', 60_000)
      const { status, body } = await http<Task>(`${gateway.url}/v1/earn/deposit?wait=true`, {
        method: 'POST',
        body: { amount_usdc: '100' },
        headers: bearer(agent),
      })
      assert.equal(`${status} ${body.status}`, '200 completed', JSON.stringify(body))
      return { task_id: body.task_id, position_id: body.result!.position_id }
    },
    open: async () =>
      (await tasks()).filter(({ status }) => status === 'pending' || status === 'running').length,
    async account() {
      let cash = faucetGrantUnits
      let shares = 0n
      for (const { kind, outcome, result } of await tasks()) {
        if (outcome !== 'executed' || !result || !moving.has(kind)) continue
        const amount = unitsOf(result.amount_usdc_decimal)
        cash += kind === 'earn_deposit' ? -amount : amount
        shares += BigInt(result.shares_delta)
      }
      return { reported: { cash: String(cash), shares: String(shares) }, recorded: await onChain() }
    },
  }
}
