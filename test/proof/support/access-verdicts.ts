/**
 * What each credential may do, written by hand: the matrix compares every door of the product with these tables, and
 * nothing here is read from the code under test.
 */
import type { Scope } from '#kernel/contract/caller.ts'
import type { Access, Entry } from '#kernel/contract/operation.ts'

export type Verdict =
  | 'admitted'
  | 'unauthorized'
  | 'invalid_token'
  | 'suspended'
  | 'insufficient_scope'
  | 'signup_required'
  | 'step_up_required'

export type CredentialKind =
  | 'no credential'
  | 'no token'
  | 'suspended'
  | 'key pair'
  | 'person before the sign-up'
  | 'person who signed in a while ago'
  | 'person who has just signed in'

export type Credential = {
  what: string
  kind: CredentialKind
  authorization: string | undefined
  /** What the token carries; empty where the kind has none. */
  scopes: readonly Scope[]
}

type Column = 'public' | 'person' | 'with the scope' | 'without the scope'

const refusedAs = (verdict: Verdict): Record<Column, Verdict> => ({
  public: 'admitted',
  person: verdict,
  'with the scope': verdict,
  'without the scope': verdict,
})

const verdicts: Readonly<Record<CredentialKind, Record<Column, Verdict>>> = {
  'no credential': refusedAs('unauthorized'),
  'no token': refusedAs('invalid_token'),
  suspended: refusedAs('suspended'),
  'key pair': {
    public: 'admitted',
    // The wrong scheme: the operation takes no token of a key pair.
    person: 'invalid_token',
    'with the scope': 'admitted',
    'without the scope': 'insufficient_scope',
  },
  'person before the sign-up': {
    public: 'admitted',
    person: 'admitted',
    'with the scope': 'signup_required',
    'without the scope': 'signup_required',
  },
  'person who signed in a while ago': {
    public: 'admitted',
    person: 'admitted',
    'with the scope': 'admitted',
    'without the scope': 'insufficient_scope',
  },
  'person who has just signed in': {
    public: 'admitted',
    person: 'admitted',
    'with the scope': 'admitted',
    'without the scope': 'insufficient_scope',
  },
}

export function verdictOf(access: Access, { kind, scopes }: Pick<Credential, 'kind' | 'scopes'>): Verdict {
  // Whatever a user presents is none: the key of a backend is another header.
  if (access === 'backend') return 'unauthorized'
  const column =
    access === 'public' || access === 'person'
      ? access
      : scopes.includes(access)
        ? 'with the scope'
        : 'without the scope'
  return verdicts[kind][column]
}

/** MCP has no public calls: a caller without a valid credential reaches no tool. */
export const mcpVerdictOf = (
  access: Access,
  { kind, scopes }: Pick<Credential, 'kind' | 'scopes'>,
): Verdict =>
  kind === 'no credential' || kind === 'no token' || kind === 'suspended'
    ? verdicts[kind]['with the scope']
    : verdictOf(access, { kind, scopes })

export const statusOf: Readonly<Record<Exclude<Verdict, 'admitted'>, number>> = {
  unauthorized: 401,
  invalid_token: 401,
  suspended: 403,
  insufficient_scope: 403,
  signup_required: 403,
  step_up_required: 403,
}

/** These need no credential; a new one is added here on purpose, or not at all. */
const publicOperations = new Set([
  'auth_register',
  'auth_verify',
  'auth_token',
  // A signature of the key pair stands in place of a token.
  'auth_create_key',
  'chains_list',
  'discovery_capabilities',
  'discovery_health',
  'earn_info',
  'subscriptions_plans',
])
const exceptions: Readonly<Record<string, Access>> = {
  // Before the sign-up a person has no scopes yet.
  auth_signup: 'person',
  // For servers of the operator, whose users may have no token at hand.
  image_create: 'backend',
  // Each token may end itself.
  auth_revoke: 'read',
  // The person, or the key pair itself: an app that may only trade acknowledges for nobody.
  predmkt_acknowledge_disclaimer: 'manage',
  // It moves nothing and makes files, as a chat does.
  strategies_backtest: 'chat',
}
/** Sections that say what an account may do, and who decides. */
const governing = new Set(['policy', 'recipients', 'agents', 'approvals', 'webhooks'])

/** The accesses that an operation may declare. */
export function allowedAccesses(name: string, { kind }: Pick<Entry, 'kind'>): readonly Access[] {
  if (publicOperations.has(name)) return ['public']
  const exception = exceptions[name]
  if (exception) return [exception]
  // A page on which a person pays moves nothing, and a plan is ended like any other power.
  if (name.startsWith('subscriptions_')) return kind === 'read' ? ['read'] : ['manage']
  if (name.startsWith('chat_')) return ['chat']
  // What a schedule asks and orders is a chat; its records are read.
  if (name.startsWith('schedules_')) return kind === 'read' ? ['read'] : ['chat']
  if (kind === 'read' || kind === 'stream') return ['read', 'manage']
  if (governing.has(name.split('_')[0]!)) return ['manage', 'propose']
  return kind === 'task' ? ['trade', 'earn', 'withdraw'] : ['trade', 'earn', 'manage']
}
