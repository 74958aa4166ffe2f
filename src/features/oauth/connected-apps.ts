import type { Transact } from '#durable/transactions.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import { mailName } from '#engines/person-mails/mail-text.ts'
import type { Clock } from '#kernel/clock.ts'
import { keyClientId } from '#kernel/contract/access-key.ts'
import { isOwnClient } from '#kernel/contract/caller.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import type { Payload, Records } from './authorization-server-records.ts'
import type { Grants } from './grant-revocation.ts'

export type Connection = {
  clientId: string
  /** The name that the client registered; null if the client publishes its own metadata. */
  clientName: string | null
  scopes: string[]
  creditsPerDay: number
  /** The origins of the servers to which the app has the person's events posted. */
  postsTo: string[]
  connectedAt: Date
  /** When the key ends that the person has made on a page; null for an app that has signed in. */
  keyEndsAt: Date | null
}
export type ConnectedKey = {
  personId: string
  keyId: string
  name: string
  scopes: readonly string[]
  days: number
  /** What the key may spend in a day, if it may chat. */
  creditsPerDay?: number
}
export type PostedOrigins = (personId: string) => Promise<readonly { clientId: string; origin: string }[]>
export type Connections = {
  connect(grantId: string, grant: Payload, expiresInSeconds?: number): Promise<void>
  /** Connects a key; `store` adds it in the same transaction, and the connection ends with the key. */
  connectKey(key: ConnectedKey, store: (tx: Tx, grantId: string) => Promise<void>): Promise<void>
  allowCredits(accountId: string, clientId: string, perDay: number): Promise<void>
  /** Lists at most a hundred connected apps of the person, the latest first. */
  list(accountId: string): Promise<Connection[]>
  end(accountId: string, clientId: string): Promise<void>
}

const connectionsMax = 100
const daySeconds = 86_400
/** The credits that an app that may chat spends in a day, if the person names no amount. */
export const creditsPerDayDefault = 20
export const creditsPerDayMax = 10_000

export async function allowCredits(
  db: Queryable,
  accountId: string,
  { clientId, perDay }: { clientId: string; perDay: number },
): Promise<void> {
  await query(
    db,
    `insert into app_credits (user_id, client_id, per_day) values ($1, $2, $3)
     on conflict (user_id, client_id) do update set per_day = excluded.per_day`,
    [accountId, clientId, perDay],
  )
}

/** Returns the client ids of the apps that the person has connected, without those whose connection has ended. */
export async function connectedApps(db: Queryable, accountId: string, now: Date): Promise<string[]> {
  const rows = await query<{ client_id: string }>(
    db,
    `select distinct payload->>'clientId' as client_id from oauth_record
       where model = 'Grant' and account_id = $1 and expires_at > $2 order by client_id`,
    [accountId, now],
  )
  return rows.map(({ client_id }) => client_id).filter((each) => !isOwnClient(each))
}

type ConnectionsDeps = {
  db: Queryable
  transact: Transact
  records: Pick<Records, 'of'>
  mailQueue: MailQueue
  clock: Clock
  grants: Pick<Grants, 'endApp'>
  baseUrl: () => string
  postedOrigins: PostedOrigins
}

const acts: Record<string, string> = {
  trade: 'trade within your limits',
  earn: 'use the vault',
  chat: 'chat and spend your credits',
  manage: 'lower your limits, stop trading, and acknowledge the disclaimer on prediction markets',
  propose: 'ask you to raise limits, to add recipients and to link agents',
}

const scopesOf = (resources: unknown): string[] => [
  ...new Set(Object.values((resources ?? {}) as Record<string, string>).flatMap((each) => each.split(' '))),
]

/** Returns the name of an app for the beginning of a sentence. */
export async function appText(db: Queryable, clientId: string): Promise<string> {
  const [row] = await query<{ name: string | null }>(
    db,
    `select payload->>'client_name' as name from oauth_record where model = 'Client' and id = $1`,
    [clientId],
  )
  const name = mailName(row?.name ?? URL.parse(clientId)?.host ?? '')
  return name === '' ? 'An app without a name' : `The app “${name}”`
}

export function createConnections({
  db,
  transact,
  records,
  mailQueue,
  clock,
  grants,
  postedOrigins,
  baseUrl,
}: ConnectionsDeps): Connections {
  const mayText = (scopes: readonly string[]): string => {
    const allowed = Object.entries(acts).flatMap(([scope, act]) => (scopes.includes(scope) ? [act] : []))
    return ['see your wallets, orders and history', ...allowed].join('; ')
  }
  return {
    async connectKey({ personId, keyId, name, scopes, days, creditsPerDay }, store) {
      const clientId = keyClientId(keyId)
      const resources = { [baseUrl()]: scopes.join(' ') }
      await transact(async (tx) => {
        const grant = { accountId: personId, clientId, resources, keyName: name }
        await records.of('Grant', tx).upsert(keyId, grant, days * daySeconds)
        if (creditsPerDay !== undefined) await allowCredits(tx, personId, { clientId, perDay: creditsPerDay })
        await store(tx, keyId)
        const text = `The key “${mailName(name)}” was made. For ${days} days it may ${mayText(scopes)}.`
        await mailQueue.add(tx, personId, 'app_connected', { text })
      })
      mailQueue.wake()
    },
    async connect(grantId, grant, expiresInSeconds) {
      await transact(async (tx) => {
        await records.of('Grant', tx).upsert(grantId, grant, expiresInSeconds)
        const app = await appText(tx, String(grant.clientId))
        await mailQueue.add(tx, String(grant.accountId), 'app_connected', {
          text: `${app} was connected. It may ${mayText(scopesOf(grant.resources))}.`,
        })
      })
      mailQueue.wake()
    },
    allowCredits: (accountId, clientId, perDay) => allowCredits(db, accountId, { clientId, perDay }),
    async list(accountId) {
      const rows = await query<{
        client_id: string
        client_name: string | null
        resources: Record<string, string> | null
        created_at: Date
        key_ends_at: Date | null
        credits_per_day: number
      }>(
        db,
        `with latest as (
           select distinct on (payload->>'clientId') payload->>'clientId' as client_id, created_at,
             payload->'resources' as resources, payload->>'keyName' as key_name, expires_at
           from oauth_record where model = 'Grant' and account_id = $1 and expires_at > $2
           order by payload->>'clientId', created_at desc)
         select g.client_id, g.created_at, g.resources, coalesce(c.payload->>'client_name', g.key_name) as client_name,
           case when g.key_name is not null then g.expires_at end as key_ends_at,
           coalesce(a.per_day, ${creditsPerDayDefault}) as credits_per_day
         from (select * from latest order by created_at desc, client_id limit ${connectionsMax}) g
         left join oauth_record c on c.model = 'Client' and c.id = g.client_id
         left join app_credits a on a.user_id = $1::uuid and a.client_id = g.client_id
         order by g.created_at desc, g.client_id`,
        [accountId, clock.now()],
      )
      const posted = await postedOrigins(accountId)
      const postsTo = (id: string) => [
        ...new Set(posted.filter(({ clientId }) => clientId === id).map(({ origin }) => origin)),
      ]
      return rows.map(({ client_id, client_name, resources, created_at, key_ends_at, credits_per_day }) => ({
        clientId: client_id,
        clientName: client_name,
        scopes: scopesOf(resources),
        creditsPerDay: credits_per_day,
        postsTo: postsTo(client_id),
        connectedAt: created_at,
        keyEndsAt: key_ends_at,
      }))
    },
    end: grants.endApp,
  }
}
