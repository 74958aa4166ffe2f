/** Another door and the door of HTTP answer alike, results and faults, for every operation of the product. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { namesIn } from '#invoke/input-location.ts'
import { addressKey } from '#kernel/address-key.ts'
import { scopes } from '#kernel/caller.ts'
import { isKeyed, type RateClass } from '#kernel/operation.ts'
import { type DoorReply, loopback } from '../../harness/in-process-door.ts'
import { operations as contractOperations } from './contracts.ts'
import { differencesOf } from './door-differences.ts'
import { journey, wait } from './every-operation.ts'
import { minimalInput, mistakesOf } from './input-mistakes.ts'
import { type Authorization, type CreateDoor, openTwins, type Replies, type Twins } from './twins.ts'

type Json = Record<string, unknown>

const points = 20_000
export function compareDoors(label: string, createDoor: CreateDoor): void {
  let gateway: Twins
  let differing: string[]

  before(async () => {
    gateway = await openTwins(points, createDoor)
  })
  after(async () => {
    console.log(`doors: ${label}, ${gateway.count()} requests, ${gateway.operations.length} operations`)
    await gateway[Symbol.asyncDispose]()
  })

  const doorsTest = (title: string, run: () => Promise<void>) =>
    test(title, async () => {
      differing = []
      await run()
      assert.deepEqual(differing, [])
    })

  /** Asks both doors, and notes where they differ. */
  async function compare(what: string, question: Parameters<Twins['ask']>[0]): Promise<Replies> {
    const replies = await gateway.ask(question)
    differing.push(...differencesOf(`${question.name}: ${what}`, replies))
    return replies
  }

  const resultOf = (reply: DoorReply): unknown => {
    assert.ok('result' in reply, JSON.stringify(reply))
    return reply.result
  }
  const codeOf = (reply: DoorReply): unknown => ('fault' in reply ? reply.fault.code : undefined)

  /** Balancers ask for the health over HTTP with any query and under any load: there it refuses nobody. */
  const limitedOperations = () =>
    gateway.operations.filter(
      // The callers of this suite have key pairs; test/oauth calls the operations of people.
      ({ name, entry }) => name !== 'discovery_health' && entry.access !== 'person',
    )

  /** One of its own for the operation that ends it. */
  async function credentialFor(name: string): Promise<{ authorization?: Authorization }> {
    return name === 'auth_revoke' ? ownTokens() : {}
  }
  async function ownTokens(granted = scopes.slice()): Promise<{ authorization: Authorization }> {
    const { twins, rows } = gateway
    const tokens = await Promise.all(twins.map(({ userId }) => rows.token(userId, { scopes: granted })))
    return { authorization: (twin) => `Bearer ${tokens[twins.indexOf(twin)]}` }
  }

  doorsTest(`a journey through every operation is answered alike by HTTP and by ${label}`, async () => {
    const all = (await contractOperations()).map(({ name }) => name).sort()
    assert.deepEqual(gateway.operations.map(({ name }) => name).sort(), all)
    assert.deepEqual([...new Set(journey.map(({ name }) => name))].sort(), all)
    for (const { keep, fault, ...question } of journey) {
      const replies = await compare('a step', question)
      for (const [index, reply] of replies.entries()) {
        assert.equal(codeOf(reply), fault, JSON.stringify(reply))
        if (fault === undefined) keep?.(resultOf(reply) as Json, gateway.twins[index]!.known)
      }
    }
  })

  doorsTest(
    'the smallest request, its repetition and another one under its key are answered alike',
    async () => {
      let [answered, replayed, conflicts] = [0, 0, 0]
      await gateway.ask({ name: 'policy_tighten', key: 'taken' })
      for (const { name, entry } of gateway.operations) {
        if (entry.kind === 'stream') continue
        // A task that runs is another one a moment later.
        const input = { ...minimalInput(entry), ...(entry.kind === 'task' ? wait : {}) }
        if (!isKeyed(entry)) {
          await compare('the smallest request', { name, input })
          continue
        }
        const key = `key-${name}`
        const first = await compare('under a key', { name, input, key, ...(await credentialFor(name)) })
        const again = await compare('again', { name, input, key })
        const other = await compare('under a key of another request', { name, input, key: 'taken' })
        for (const index of [0, 1] as const) {
          const [earlier, later] = [first[index], again[index]]
          if (!('result' in earlier)) continue
          answered++
          if ('result' in later && later.replayed && later.key === key) replayed++
        }
        conflicts += other.filter((reply) => codeOf(reply) === 'idempotency_conflict').length
      }
      assert.equal(replayed, answered)
      assert.ok(answered >= 16 && conflicts >= 38, `${answered} answered, ${conflicts} conflicts`)
    },
  )

  doorsTest('every wrong field is refused alike, and at the same place', async () => {
    let refused = 0
    for (const { name, entry } of limitedOperations()) {
      for (const { what, input } of mistakesOf(entry)) {
        const [reply] = await compare(what, { name, input, ...(await credentialFor(name)) })
        if (codeOf(reply) === 'validation') refused++
      }
    }
    assert.ok(refused >= 300, `${refused} refused`)
  })

  doorsTest('a credential that is none, and one without the scope, are refused alike', async () => {
    for (const { name, entry } of gateway.operations) {
      const { access } = entry
      if (access === 'public') continue
      const lacking = await ownTokens(scopes.filter((scope) => scope !== access))
      const credentials: Record<string, Authorization> = {
        unauthorized: () => undefined,
        invalid_token: () => `Bearer ${gateway.rows.unknownToken()}`,
        // A person's operation has no scope that a key pair could lack.
        ...(access !== 'person' && { insufficient_scope: lacking.authorization }),
      }
      for (const [code, authorization] of Object.entries(credentials)) {
        const [reply] = await compare(code, { name, input: minimalInput(entry), authorization })
        assert.equal(codeOf(reply), code, name)
      }
    }
  })

  doorsTest("an id that is nobody's is refused alike", async () => {
    const absentId = '01890000-0000-7000-8000-000000000000'
    let asked = 0
    for (const { name, entry } of gateway.operations) {
      const ids = [...namesIn(entry.params), ...namesIn(entry.body)].filter((field) =>
        /^(?:task|position|order|agent)_id$/.test(field),
      )
      for (const field of ids) {
        asked++
        await compare(field, { name, input: { ...minimalInput(entry), [field]: absentId } })
      }
    }
    assert.ok(asked >= 8, `${asked} ids`)
  })

  doorsTest('a budget that is spent is refused alike by every operation that it limits', async () => {
    const { invocation, twins } = gateway
    const spend = async (rate: RateClass, key: string) => {
      for (let spent = 0; spent <= points; spent++) await invocation.limits.consume(rate, key)
    }
    await spend('auth', addressKey(loopback))
    for (const { userId } of twins)
      for (const rate of ['read', 'money', 'exit', 'stream'] as const) await spend(rate, `user:${userId}`)
    for (const { name, entry } of limitedOperations()) {
      const [reply] = await compare('spent', { name, input: minimalInput(entry) })
      assert.equal(codeOf(reply), 'rate_limited', name)
    }
  })
}
