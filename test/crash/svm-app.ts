/** A world with Solana alone, one database, and as many gateways as a test kills. */
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { createJsonRpc } from '#kernel/wire/json-rpc.ts'
import { recipient, solanaId } from '../chains/svm-send.ts'
import { testDatabase } from '../harness/cluster.ts'
import {
  type Agent,
  bearer,
  dataFolder,
  type Gateway,
  http,
  launch,
  newAgent,
  upstreamsAt,
} from '../harness/gateway.ts'
import { ownWorld } from '../harness/own-world.ts'

const entry = fileURLToPath(new URL('./svm-gateway.ts', import.meta.url))
const usdc = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'

export type Sender = Agent & { address: string }
export type TaskBody = {
  task_id: string
  status: string
  outcome: string | null
  error: { code: string } | null
}

export async function createSvmCrashApp() {
  const folder = dataFolder()
  const database = await testDatabase()
  const world = await ownWorld(['solana'])
  const { control, solana, faucet } = world.urls
  const admin = new pg.Pool({ connectionString: database.url, max: 2 })
  admin.on('error', () => {})
  // A pool that ends forgets its connections before they are closed, and the database may be dropped first.
  admin.on('connect', (client) => client.on('error', () => {}))
  let gateways = 0
  const ask = async (method: string, path: string, body?: object) => {
    const reply = await http(control + path, { method, ...(body && { body }) })
    if (reply.status !== 200) throw new Error(`${method} ${path}: ${JSON.stringify(reply.body)}`)
    return reply.body
  }
  const rpc = createJsonRpc({
    url: solana,
    name: 'Solana',
    timeoutMs: 5_000,
    net: {
      async fetch({ url, headers, body = null }) {
        const reply = await fetch(url, { method: 'POST', headers, body })
        return { status: reply.status, body: await reply.text() }
      },
    },
  })
  return {
    admin,
    /** Failures of the nodes, until the quiet preset is set again. */
    usePreset: (preset: 'quiet' | 'realistic', seed = 1) =>
      ask('PUT', '/faults', { target: 'solana', preset, seed }),
    gateway: (env: Record<string, string> = {}): Promise<Gateway> =>
      launch({
        entry,
        readyMsMax: 60_000,
        env: {
          ...upstreamsAt('off'),
          SOLANA_RPC_URL: solana,
          FAUCET_URL: faucet,
          DATABASE_URL: database.url,
          DATA_DIR: `${folder.path}/gateway-${process.pid}-${gateways++}`,
          LEASE_MS: '1000',
          RATE_MONEY: '0',
          RATE_AUTH: '0',
          SOLANA_SPONSOR_USER_DAY: '1',
          ...env,
        },
      }),
    async newSender(url: string, amount = '1000'): Promise<Sender> {
      const agent = await newAgent(url)
      const { body } = await http<{ wallets: { address: string; chain_type: string }[] }>(
        `${url}/v1/wallets`,
        {
          headers: bearer(agent),
        },
      )
      const { address } = body.wallets.find(({ chain_type }) => chain_type === 'solana')!
      await ask('POST', '/faucet/fund', { chain_id: solanaId, address, token: 'USDC', amount })
      return { ...agent, address }
    },
    async usdcOf(owner: string): Promise<bigint> {
      const params = [owner, { mint: usdc }, { encoding: 'jsonParsed', commitment: 'processed' }]
      const [answer] = await rpc([{ method: 'getTokenAccountsByOwner', params }])
      if (!answer || !('result' in answer)) throw new Error(JSON.stringify(answer))
      const { value } = answer.result as {
        value: { account: { data: { parsed: { info: { tokenAmount: { amount: string } } } } } }[]
      }
      return value.reduce((sum, { account }) => sum + BigInt(account.data.parsed.info.tokenAmount.amount), 0n)
    },
    receivedUnits(): Promise<bigint> {
      return this.usdcOf(recipient)
    },
    async [Symbol.asyncDispose]() {
      await admin.end()
      await world[Symbol.asyncDispose]()
      await database.drop()
      folder[Symbol.dispose]()
    },
  }
}
export type SvmCrashApp = Awaited<ReturnType<typeof createSvmCrashApp>>

export const sendUnits = 1_000_000n

export const send = (url: string, sender: Sender, key: string, { wait = true, units = sendUnits } = {}) =>
  http<TaskBody>(`${url}/v1/test/send?wait=${wait}&timeout=60`, {
    method: 'POST',
    headers: { ...bearer(sender), 'idempotency-key': key },
    body: { symbol: 'USDC', units: String(units) },
    timeoutMs: 65_000,
  })
