import type { EvmCall } from '#kernel/task/signer.ts'
import { isRecord } from '#kernel/wire/json.ts'
import { type Queryable, query } from '#store/query.ts'

/** Returns the calls that the gateway's transaction runs on an account; undefined for a transaction of others. */
export async function ownCallsOf(
  db: Queryable,
  { txHash, account }: { txHash: string; account: string },
): Promise<Pick<EvmCall, 'to' | 'value'>[] | undefined> {
  const [row] = await query<{ calls: unknown }>(
    db,
    `select e.intent -> 'batch' -> 'calls' as calls from tx_attempt a join effect e on e.id = a.effect_id
       where a.external_id = $1 and lower(e.intent -> 'batch' ->> 'account') = $2`,
    [txHash.toLowerCase(), account.toLowerCase()],
  )
  if (!Array.isArray(row?.calls)) return undefined
  return row.calls.map((call: unknown) => {
    const { to, value } = isRecord(call) ? call : {}
    return { to: String(to), value: BigInt(String(value)) }
  })
}
