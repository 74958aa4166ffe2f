/**
 * The baseline of an accepted deposit: the same reads of the chain, the same signatures, one insert that is committed
 * before the answer, and the transaction is sent after it. No policy, no ledger, no task.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { privateKeyToAddress, signTransaction } from 'viem/accounts'
import { bytesToHex } from 'viem/utils'
import { worldVault } from '#config-safety.ts'
import { chainList } from '#features/chains/chain-list.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { executeData } from '#upstreams/evm/batch.ts'
import { evmCrypto } from '#upstreams/evm/custody-crypto.ts'
import { createEvm } from '#upstreams/evm/evm.ts'
import { createHttpClient } from '#upstreams/http-client.ts'
import { createVault } from '#upstreams/vault/vault.ts'

const [databaseUrl = '', rpcUrl = '', width = '', ...accounts] = process.argv.slice(2)
const [row] = chainList({ urls: { '8453': rpcUrl }, finality: 'local' })
if (row?.family !== 'evm') throw new Error('no chain')
const chain = createEvm({ row, net: createHttpClient({ failpoints: noFailpoints }) })
const vault = createVault({ chain, chainId: row.id, address: worldVault, asset: row.usdc })
const pool = new pg.Pool({ connectionString: databaseUrl, max: Number(width) })
await pool.query(
  'create table bare_deposit (id uuid primary key, account text, intent jsonb, raw text, at timestamptz)',
)

const [userKey, payerKey] = [systemRandom.bytes(32), bytesToHex(systemRandom.bytes(32))] as const
const payer = privateKeyToAddress(payerKey)
const amountUnits = 1_000_000n
await fetch(rpcUrl, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'anvil_setBalance',
    params: [payer, `0x${(10n ** 24n).toString(16)}`],
  }),
})
let nonce = 0

async function deposit(account: string): Promise<string> {
  const calls = vault.depositCalls(account, amountUnits)
  const [, state, simulation] = await Promise.all([
    vault.account(account),
    chain.account(account),
    chain.simulate(account, calls),
  ])
  if (!simulation.ok) throw new Error(simulation.reason)
  const id = uuidv7(new Date(), systemRandom)
  const batch = {
    chainId: row!.id,
    account,
    delegate: worldVault,
    calls,
    nonce: chain.batchNonce(id),
    executor: payer,
    deadlineSeconds: state.head.timestampSeconds + 300,
  }
  const signature = await evmCrypto.signBatch(userKey, batch)
  const raw = await signTransaction({
    privateKey: payerKey,
    transaction: {
      type: 'eip1559',
      chainId: Number(row!.id),
      nonce: nonce++,
      // To itself: the key of the user is not here, so the account would refuse the call.
      to: payer,
      data: executeData(batch, signature),
      gas: simulation.gas,
      maxFeePerGas: 10n ** 11n,
      maxPriorityFeePerGas: 10n ** 9n,
    },
  })
  const intent = JSON.stringify({ ...batch, nonce: String(batch.nonce), calls: calls.length, signature })
  await pool.query({
    name: 'bare deposit',
    text: 'insert into bare_deposit values ($1, $2, $3, $4, now())',
    values: [id, account, intent, raw],
  })
  void chain.sendRaw(raw)
  return id
}

const server = createServer((request, response) => {
  const account = accounts[Number(request.url?.slice(1))] ?? ''
  deposit(account).then(
    (id) => response.end(JSON.stringify({ task_id: id })),
    (error: unknown) => response.writeHead(500).end(JSON.stringify({ error: String(error) })),
  )
})
server.keepAliveTimeout = 75_000
server.listen(0, '127.0.0.1', () => {
  console.log(`ready http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
