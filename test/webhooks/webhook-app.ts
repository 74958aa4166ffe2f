/** Instances of the product without upstreams, whose clock the test moves, and a user whose log it writes. */
import type { Overrides } from '#compose/compose.ts'
import type { Clock } from '#kernel/clock.ts'
import { query } from '#store/query.ts'
import { eventually } from '../harness/gateway.ts'
import { addUser, type Instance, openInstance, type TestUser } from '../harness/instance.ts'
import { ownDatabase } from '../harness/own-database.ts'

/** Its own event is the first one of a new user, and is not posted to it. */
export type Created = { webhook_id: string; secret: string; delivered_through: string }
export type Shown = {
  webhook_id: string
  status: string
  disabled_reason: string | null
  failed_attempts: number
  delivered_through: string
  next_attempt_at: string | null
}
type Delivery = {
  event_id: string
  event_type: string
  status: string
  attempts: number
  response_status: number | null
  error: string | null
}

const pollMs = 100

type WebhookAppOptions = {
  overrides?: Overrides
  /** Longer where a lease that ends during a request would change the result: its message is then sent again. */
  leaseMs?: number
}

export async function createWebhookApp({ overrides = {}, leaseMs = 2_000 }: WebhookAppOptions = {}) {
  await using parts = new AsyncDisposableStack()
  const { url: databaseUrl, database } = parts.use(await ownDatabase())
  const time = { offsetMs: 0 }
  const clock: Clock = { now: () => new Date(Date.now() + time.offsetMs) }
  const open = async (more: Overrides = {}) => {
    const instance = await openInstance({
      databaseUrl,
      config: { LEASE_MS: leaseMs },
      overrides: { clock, webhookPollMs: pollMs, ...overrides, ...more },
    })
    const work = new AsyncDisposableStack()
    work.use(instance)
    instance.runtime.start()
    work.use(instance.features.webhooks.start((event) => event))
    return { ...instance, [Symbol.asyncDispose]: () => work.disposeAsync() }
  }
  const main = parts.use(await open())
  const owned = parts.move()
  return {
    main,
    database,
    /** Another instance on the same database. */
    open,
    travel(ms: number) {
      time.offsetMs += ms
    },
    newUser: () => addUser(main),
    /** Events as a section appends them, with the hint that follows the commit. */
    async happen(user: TestUser, count = 1, instance: Instance = main, type = 'security.flagged') {
      const { transactions, taskEngine } = instance
      const events = Array.from({ length: count }, (_, n) => ({ type, data: { state: `state ${n}` } }))
      await transactions.run((tx) => taskEngine.events.add(tx, user.id, events))
      taskEngine.events.notify(user.id)
    },
    create: (user: TestUser, url: string, more: object = {}) =>
      main.call<Created>('webhooks_create', { url, ...more }, user),
    async shown(user: TestUser, id: string): Promise<Shown> {
      const { webhooks } = await main.call<{ webhooks: Shown[] }>('webhooks_list', {}, user)
      return webhooks.find((each) => each.webhook_id === id)!
    },
    async deliveries(user: TestUser, id: string): Promise<Delivery[]> {
      const page = await main.call<{ deliveries: Delivery[] }>(
        'webhooks_deliveries',
        { webhook_id: id },
        user,
      )
      return page.deliveries
    },
    until: <T>(poll: () => Promise<T | undefined>, what: string) => eventually(poll, what),
    rows: <Row extends object>(text: string, values: unknown[] = []) =>
      query<Row>(database.pool, text, values),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
export type WebhookApp = Awaited<ReturnType<typeof createWebhookApp>>
