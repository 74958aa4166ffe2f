import { sponsorsTopic } from '#durable/events/notifier.ts'
import { solanaId } from '#features/chains/chain-list.ts'
import { query } from '#store/query.ts'
import { isAddress } from '#upstreams/solana/base58.ts'
import { addressOfSecret } from '#upstreams/solana/sign.ts'
import { type Arguments, UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import type { Row } from './output.ts'

const evmChains = ['1', '8453', '42161', '421614', '137'] as const
const chains = [...evmChains, solanaId] as const

/**
 * Nonces are mined in order, so pending transactions have the last nonces of a sponsor: only this many are searched.
 */
const pendingMax = 10_000

const listSponsors: AdminCommand['run'] = async (session) => {
  const { pool } = session.database
  await session.record(pool, { command: 'sponsors list' })
  const text = `select l.chain, l.signer, l.next as next_nonce,
      (select count(*) from tx_attempt c join effect e on e.id = c.effect_id
        where c.nonce_kind = 'evm' and c.chain = l.chain and c.signer = l.signer and c.nonce >= l.next - ${pendingMax}
          and e.status in ('prepared', 'sent', 'unknown')) as under_way,
      p.since as paused_since, p.set_by as paused_by, p.reason
    from (select chain, signer, next from nonce_sequence where kind = 'evm'
      union select p.chain, p.signer, null from paused_sponsor p
        where p.chain <> '${solanaId}'
          and not exists (select from nonce_sequence l where l.kind = 'evm' and l.chain = p.chain and l.signer = p.signer)) l
    left join paused_sponsor p on p.chain = l.chain and p.signer = l.signer
    order by l.chain, l.signer`
  const keys = session.config.SOLANA_SPONSOR_KEYS
  const onSolana = keys.map((key) => addressOfSecret(Buffer.from(key.slice(2), 'hex')))
  session.print([...(await query<Row>(pool, text)), ...(await query<Row>(pool, solanaText, [onSolana]))])
}

/** Lists configured and paused Solana sponsors, which have no nonces: open transactions count as under way. */
const solanaText = `select '${solanaId}' as chain, l.signer, null as next_nonce,
    (select count(*) from task_queue t join effect e on e.task_id = t.task_id
      where e.kind = 'svm_transaction' and e.intent ->> 'feePayer' = l.signer
        and e.status in ('prepared', 'sent', 'unknown')) as under_way,
    p.since as paused_since, p.set_by as paused_by, p.reason
  from (select unnest($1::text[]) as signer
    union select signer from paused_sponsor where chain = '${solanaId}') l
  left join paused_sponsor p on p.chain = '${solanaId}' and p.signer = l.signer
  order by l.signer`

function readTarget(args: Arguments): { signer: string; chainIds: readonly string[] } {
  const given = args.positional('address')
  const isOnSolana: boolean = isAddress(given)
  const signer = isOnSolana ? given : given.toLowerCase()
  if (!isOnSolana && !/^0x[0-9a-f]{40}$/.test(signer))
    throw new UsageError(
      'A sponsor is identified by its address: 0x and 40 hex digits, or an address of Solana.',
    )
  const chain = args.text('chain')
  if (chain !== undefined && !chains.some((id) => id === chain))
    throw new UsageError(
      `--chain must be one of ${chains.join(', ')}; without it the command applies to all.`,
    )
  if (chain !== undefined && (chain === solanaId) !== isOnSolana)
    throw new UsageError(`The address is none of chain ${chain}.`)
  const all = isOnSolana ? [solanaId] : evmChains
  return { signer, chainIds: chain === undefined ? all : [chain] }
}

const pause: AdminCommand['run'] = async (session, args) => {
  const { signer, chainIds } = readTarget(args)
  const { database, clock, actor, reason } = session
  await database.transaction(async (tx) => {
    for (const chain of chainIds)
      await query(
        tx,
        `insert into paused_sponsor (chain, signer, since, set_by, reason) values ($1, $2, $3, $4, $5)
         on conflict do nothing`,
        [chain, signer, clock.now(), actor, reason],
      )
    await session.record(tx, { command: 'sponsors pause', subject: signer, details: { chains: chainIds } })
  })
  await session.notify([sponsorsTopic])
  session.printLine(
    `${signer} is paused on ${chainIds.join(', ')}; its pending transactions are still confirmed`,
  )
}

const unpause: AdminCommand['run'] = async (session, args) => {
  const { signer, chainIds } = readTarget(args)
  await session.database.transaction(async (tx) => {
    const text = 'delete from paused_sponsor where signer = $1 and chain = any($2::text[]) returning chain'
    const rows = await query(tx, text, [signer, chainIds])
    if (rows.length === 0) throw new UsageError(`${signer} is not paused on ${chainIds.join(', ')}.`)
    await session.record(tx, { command: 'sponsors unpause', subject: signer, details: { chains: chainIds } })
  })
  await session.notify([sponsorsTopic])
  session.printLine(`${signer} is no longer paused on ${chainIds.join(', ')}`)
}

export const sponsorCommands: readonly AdminCommand[] = [
  {
    name: 'sponsors list',
    changes: false,
    summary: 'list the accounts that pay for gas, their pending transactions, and which are paused',
    run: listSponsors,
  },
  {
    name: 'sponsors pause',
    positionals: ['<address>'],
    options: { chain: 'string' },
    summary: 'stop an account from paying for new transactions, on one chain or on all',
    run: pause,
  },
  {
    name: 'sponsors unpause',
    positionals: ['<address>'],
    options: { chain: 'string' },
    summary: 'allow a paused account to pay again',
    run: unpause,
  },
]
