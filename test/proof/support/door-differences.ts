/** What two doors answered, but for what belongs to one user and one moment. */
import type { DoorReply } from '../../harness/in-process-door.ts'
import type { Replies } from './twins.ts'

type Json = Record<string, unknown>

const forms: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uuid>'],
  // Pieces of an answer that wait for the same commit are one event.
  [/<uuid>:\d+/g, '<uuid>:<seq>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>'],
  [/agt_[\w-]{16,}/g, '<agent>'],
  // The link of a file is signed until a time.
  [/exp=\d+&sig=[\w.<>-]+/g, 'exp=<time>&sig=<signature>'],
  [/whsec_[\w+/]+=*/g, '<secret>'],
  [/cs_test_[0-9a-f]+/g, '<checkout page>'],
  [/person\d+@example\.com/g, '<email>'],
  [/0x[0-9a-fA-F]{32,}/g, '<hex>'],
  [/\b[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}\b/g, '<link code>'],
  [/the id of a stored event, from 0 to \d+/g, 'the id of a stored event, from 0 to <seq>'],
  [/full again in \d+ s/g, 'full again in <seconds>'],
  [/Moving [\d.]+ USDC/g, 'Moving <amount> USDC'],
  [/"(?:[1-9A-HJ-NP-Za-km-z]{43,44})"/g, '"<solana address>"'],
]

/** Ids of one user, places in a chain, and the amount of a transfer, by which its task knows it again. */
const ownFields = new Set(
  [
    ['block', 'as_of_block', 'nonce', 'intent_sha256'],
    ['order_id', 'oid', 'fill_id', 'sl_oids', 'tp_oids'],
    // A trade that is first seen once it is settled makes one event less.
    ['total_count'],
    ['delivered_through', 'duration_ms', 'ge', 'le'],
    ['moved_from_perp_usd', 'account_value_usd', 'withdrawable_usd'],
    ['retry_after', 'uptime_seconds', 'latency_ms', 'queue_depth', 'oldest_pending_seconds', 'age_ms'],
  ].flat(),
)

/** Ids, addresses and times are of one user and one moment; the transfers of one receipt have no order. */
function normalised(value: unknown): unknown {
  let text = JSON.stringify(value, (name, field) => {
    const isOwn = ownFields.has(name) || (name === 'total' && typeof field === 'string')
    if (isOwn && field !== null) return `<${name}>`
    if (name === 'balance_changes') return bySymbol(field)
    if (name === 'data') return withoutSlot(field)
    if (name === 'parts' && Array.isArray(field)) return field.map(withoutSide)
    return name === 'fees' && Array.isArray(field) ? field.map(withoutGas) : field
  })
  for (const [form, name] of forms) text = text.replace(form, name)
  return JSON.parse(text)
}

/** What the gateway pays at most depends on the price of gas. */
const withoutGas = (fee: Json): Json =>
  fee.paid_by === 'gateway' ? { ...fee, amount: '<gas>', amount_usd: '<gas>' } : fee

/** How much of the money at the venue lies on which side depends on a transfer between them, as `account_value_usd` does. */
const withoutSide = (part: Json): Json =>
  part.place === 'perp' || part.place === 'spot' ? { ...part, value_usd: '<side>', share: '<side>' } : part

/** Whether a new task runs at once depends on the free slots of that moment. */
const withoutSlot = (data: Json | null): unknown =>
  data?.state === 'accepted' && ['pending', 'running'].includes(String(data.status))
    ? { ...data, status: '<live>' }
    : data

const bySymbol = (changes: { symbol: string }[]) => changes.toSorted((a, b) => (a.symbol < b.symbol ? -1 : 1))

function comparable(reply: DoorReply): unknown {
  if (!('fault' in reply)) return normalised(reply)
  // Members of RFC 9457, whose names the extras of a problem document cannot have.
  const { type: _, title: __, status: ___, ...extras } = reply.fault.extras
  return normalised({ ...reply.fault, extras })
}

/** Every place where the replies differ. */
function differences(http: unknown, other: unknown, path: string): string[] {
  if (typeof http !== 'object' || typeof other !== 'object' || http === null || other === null)
    return http === other ? [] : [`${path}: ${JSON.stringify(http)}, the other door ${JSON.stringify(other)}`]
  const names = new Set([...Object.keys(http), ...Object.keys(other)])
  return [...names].flatMap((name) =>
    differences((http as Json)[name], (other as Json)[name], `${path}.${name}`),
  )
}

export const differencesOf = (label: string, [http, other]: Replies): string[] =>
  differences(comparable(http), comparable(other), label)
