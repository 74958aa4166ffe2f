import { noFailpoints } from '#kernel/failpoint.ts'
import { systemRandom } from '#kernel/id.ts'
import { query } from '#store/query.ts'
import type { AdminCommand } from './command.ts'
import type { Session } from './session.ts'

const countByKey = ({ database }: Session) =>
  query<{ kek_id: string; keys: bigint }>(
    database.pool,
    `select kek_id, count(*) as keys from
       (select kek_id from wallet union all select kek_id from agent_wallet) as sealed
     group by kek_id order by kek_id`,
  )

/** Imports the keystore on first use: its libraries double the startup time of every other command. */
const openKeys = async ({ config, clock }: Session, parts: AsyncDisposableStack) => {
  const [{ openKeystore }, { createHttpClient }] = await Promise.all([
    import('#compose/custody.ts'),
    import('#upstreams/http-client.ts'),
  ])
  return openKeystore({
    config,
    net: parts.use(createHttpClient({ failpoints: noFailpoints })),
    clock,
    random: systemRandom,
  })
}

const showKeys: AdminCommand['run'] = async (session) => {
  await using parts = new AsyncDisposableStack()
  const { keyEncryptionKeys, keystore } = await openKeys(session, parts)
  await session.record(session.database.pool, { command: 'keys show' })
  const problems = new Map(
    (await keystore.unusableKeyEncryptionKeys(session.database.pool)).map(({ kekId, reason }) => [
      kekId,
      reason,
    ]),
  )
  const rows = (await countByKey(session)).map(({ kek_id, keys }) => ({
    kek_id,
    keys,
    role:
      kek_id === keyEncryptionKeys.current.id
        ? 'current'
        : keyEncryptionKeys.find(kek_id)
          ? 'former'
          : 'not in the settings',
    opens: problems.get(kek_id) ?? 'yes',
  }))
  session.print(rows)
}

const rotateKeys: AdminCommand['run'] = async (session) => {
  await using parts = new AsyncDisposableStack()
  const { keyEncryptionKeys, keystore } = await openKeys(session, parts)
  const { pool } = session.database
  const countOutdated = async () =>
    (await countByKey(session))
      .filter(({ kek_id }) => kek_id !== keyEncryptionKeys.current.id)
      .reduce((sum, { keys }) => sum + Number(keys), 0)
  const total = await countOutdated()
  await session.record(pool, {
    command: 'keys rotate',
    subject: keyEncryptionKeys.current.id,
    details: { phase: 'begun', keys: total },
  })
  const broken = new Set<string>()
  let rewrapped = 0
  let after: string | null = null
  session.printLine(`${total} keys will be wrapped under ${keyEncryptionKeys.current.id}`)
  do {
    const page = await keystore.rewrap(pool, { after })
    rewrapped += page.rewrapped
    for (const id of page.broken) broken.add(id)
    after = page.next
    session.printLine(`${rewrapped} of ${total} keys`)
  } while (after !== null)
  const left = await countOutdated()
  const details = { phase: 'ended', keys: rewrapped, left, broken: [...broken] }
  await session.record(pool, { command: 'keys rotate', subject: keyEncryptionKeys.current.id, details })
  if (broken.size > 0)
    throw new Error(`No configured key-encryption key unwraps these keys: ${[...broken].join(', ')}`)
  if (left > 0)
    throw new Error(
      `${left} keys were wrapped under another key meanwhile. Put ${keyEncryptionKeys.current.id} first on every instance, and run this again.`,
    )
  session.printLine(
    `All keys are wrapped under ${keyEncryptionKeys.current.id}; the others can be removed from KEY_ENCRYPTION_KEYS`,
  )
}

export const keyCommands: readonly AdminCommand[] = [
  {
    name: 'keys show',
    changes: false,
    summary: 'show how many wallet keys each key-encryption key wraps, and whether it unwraps them',
    run: showKeys,
  },
  {
    name: 'keys rotate',
    summary: 'wrap all wallet keys under the first key-encryption key',
    run: rotateKeys,
  },
]
