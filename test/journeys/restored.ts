/** A gateway with a data folder of its own whose database goes back to a backup, while chains, venue and providers go on. */
import assert from 'node:assert/strict'
import { type Operator, operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually, type Gateway, http, launch } from '../harness/gateway.ts'

type Health = { status: string; checks: { money: { on_hold: { scope: string; reason: string }[] } } }
export type Found = {
  chain: string
  user: string
  execution_id: string
  task_id: string | null
  venue: { type: string; order_id?: string; trigger_order_id?: string | null } | null
}

export const worldUrl = ({ lines }: Pick<Gateway, 'lines'>) =>
  lines.find((line) => line.startsWith('world '))!.split(/\s+/)[1]!

const onHold = async (url: string) => (await http<Health>(`${url}/health`)).body.checks.money.on_hold

export async function createRestorable(env: Record<string, string> = {}) {
  const folder = dataFolder()
  const settings = { ...env, DATA_DIR: folder.path }
  const operator: Operator = operatorOf(settings)
  const backup = `${folder.path}.backup`
  let gateway = await launch({ env: settings })
  return {
    operator,
    gateway: () => gateway,
    backUp: () => operator.run('backup', backup),
    /** The gateway runs again, with its money on hold. */
    async restore(): Promise<void> {
      const { port } = new URL(gateway.url)
      await gateway.stop()
      const { out } = await operator.act('disk lost', 'restore', backup)
      assert.match(out, /Money is on hold/)
      // Tokens of people name the address.
      gateway = await launch({ env: { ...settings, PORT: port } })
      assert.equal((await http<Health>(`${gateway.url}/health`)).body.status, 'degraded')
      assert.deepEqual(
        (await onHold(gateway.url)).map(({ scope, reason }) => [scope, reason]),
        [['all', 'restored']],
      )
    },
    /** What the gateway found, all of it adopted, and money that goes on, but for chains that do not answer. */
    async goOn({ silent = [] }: { silent?: string[] } = {}): Promise<Found[]> {
      assert.match(await operator.refusal('time', 'resume', '--why', 'x'), /not adopted|not compared/)
      const rows = await operator.rows<Found & { reason?: string }>('time', 'compare')
      const unread = rows.filter(({ reason }) => reason === 'not_compared')
      assert.deepEqual(unread.map(({ chain }) => chain).toSorted(), silent.toSorted())
      await operator.act('as chains and venue show', 'time', 'adopt')
      await operator.act('compared and adopted', 'time', 'resume')
      await this.heldChains(silent)
      return rows.filter((each) => each.execution_id)
    },
    heldChains: (chains: readonly string[]) =>
      eventually(
        async () => {
          const held = (await onHold(gateway.url)).map(({ scope }) => scope)
          return held.toSorted().join() === chains.toSorted().join() || undefined
        },
        `on hold: ${chains.join() || 'nothing'}`,
      ),
    async [Symbol.asyncDispose]() {
      await gateway.stop()
      folder[Symbol.dispose]()
    },
  }
}
