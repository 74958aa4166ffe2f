import { nativeSentinel, type Token } from '#kernel/money/chains.ts'
import { type Queryable, query } from '#store/query.ts'

const tokensMax = 50

/** Returns the tokens that the user's latest tasks moved, by chain; they may be on no token list. */
export async function recentTokens(db: Queryable, userId: string): Promise<Map<string, Token[]>> {
  const rows = await query<{ chain_id: string; address: string; symbol: string; decimals: number }>(
    db,
    `select distinct on (c ->> 'chain_id', lower(c ->> 'token_address'))
        c ->> 'chain_id' as chain_id, c ->> 'token_address' as address, c ->> 'symbol' as symbol,
        (c ->> 'decimals')::integer as decimals
      from (select data from task where user_id = $1 order by id desc limit 500) t, jsonb_array_elements(t.data -> 'balance_changes') c
      where jsonb_typeof(t.data -> 'balance_changes') = 'array' and c ->> 'symbol' <> ''
        and lower(c ->> 'token_address') <> $3
      limit $2`,
    // The native coin is excluded, because it is read anyway.
    [userId, tokensMax, nativeSentinel.toLowerCase()],
  )
  const byChain = new Map<string, Token[]>()
  for (const { chain_id, address, symbol, decimals } of rows)
    byChain.set(chain_id, [...(byChain.get(chain_id) ?? []), { symbol, name: symbol, decimals, address }])
  return byChain
}
