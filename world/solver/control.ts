import {
  type Fields,
  HttpError,
  numberField,
  type Route,
  rejectUnknownFields,
  textField,
} from '#world/router.ts'
import { type Currency, chainById, currencyAt } from './chains.ts'
import { QuoteError } from './errors.ts'
import type { Inventory } from './inventory.ts'
import { type KillSwitch, killPoints } from './kill-points.ts'
import type { WantedStep } from './payout-plan.ts'
import type { QuoteRules } from './quote.ts'
import type { RealismControl } from './realism.ts'
import type { Settlement } from './settlement.ts'
import type { Store } from './store.ts'

type ForcedError = { error: QuoteError; count: number }
export type RuleControl = QuoteRules & {
  disable: (chainIds: readonly number[]) => void
  sanction: (addresses: readonly string[]) => void
  forceError: (forced: ForcedError) => void
}

export const createRules = (): RuleControl => {
  const disabledChains = new Set<number>()
  const sanctioned = new Set<string>()
  let forced: ForcedError | undefined
  const replace = <T>(target: Set<T>, values: readonly T[]) => {
    target.clear()
    for (const value of values) target.add(value)
  }
  return {
    disabledChains,
    sanctioned,
    disable: (chainIds) => replace(disabledChains, chainIds),
    sanction: (addresses) =>
      replace(
        sanctioned,
        addresses.map((each) => (each.startsWith('0x') ? each.toLowerCase() : each)),
      ),
    forceError: (next) => {
      forced = next
    },
    takeForcedError: () => {
      const current = forced
      if (!current) return undefined
      forced = current.count > 1 ? { ...current, count: current.count - 1 } : undefined
      return current.error
    },
  }
}

export type ControlDeps = {
  realism: RealismControl
  rules: RuleControl
  settlement: Settlement
  inventory: Inventory
  killSwitch: KillSwitch
  store: Store
  setClockOffset: (seconds: number) => void
}

const requestsShown = 1_000
const reason = /^[A-Z][A-Z_/]{1,60}$/

const reasonField = (fields: Fields, name: string): string => {
  const text = textField(fields, name)
  if (!reason.test(text)) throw new HttpError(400, `${name} must be a reason in capitals.`)
  return text
}

const countField = (fields: Fields): number =>
  fields.count === undefined ? 1 : Math.trunc(numberField(fields, 'count', 1, 1_000_000))

const currencyField = (fields: Fields): Currency => {
  const chain = chainById(numberField(fields, 'chainId', 1, Number.MAX_SAFE_INTEGER))
  const currency = chain && currencyAt(chain, textField(fields, 'currency'))
  if (!currency) throw new HttpError(400, 'chainId and currency must name a currency of the solver.')
  return currency
}

const listField = <T>(fields: Fields, name: string, isItem: (item: unknown) => item is T): T[] => {
  const list = fields[name]
  if (Array.isArray(list) && list.every(isItem)) return list
  throw new HttpError(400, `${name} must be a list.`)
}

const isText = (item: unknown): item is string => typeof item === 'string'
const isNumber = (item: unknown): item is number => typeof item === 'number'

const isOneOf = <T extends string>(list: readonly T[], value: unknown): value is T =>
  list.includes(value as T)
const stepTexts = ['currency', 'foreignTx', 'failReason', 'refundFailReason']
const isStep = (item: unknown): item is WantedStep => {
  if (typeof item !== 'object' || item === null) return false
  const { type, shareBps, afterMs, status, names, ...texts } = item as Record<string, unknown>
  return (
    isOneOf(['fill', 'refund'], type) &&
    isNumber(shareBps) &&
    shareBps >= 0 &&
    isNumber(afterMs) &&
    afterMs >= 0 &&
    isOneOf(['pending', 'success', 'refund', 'failure'], status) &&
    isOneOf(['all', 'last', 'none'], names) &&
    Object.entries(texts).every(([name, value]) => stepTexts.includes(name) && isText(value))
  )
}

/** Settings and records of the solver, for the world and for tests. */
export const controlRoutes = (deps: ControlDeps): Route[] => {
  const { realism, rules, settlement, inventory, killSwitch, store, setClockOffset } = deps
  const post = (path: RegExp, run: (fields: Fields) => unknown): Route => ({
    method: 'POST',
    path,
    run: ({ fields }) => run(fields),
  })
  return [
    { method: 'GET', path: /^\/realism$/, run: () => realism.current() },
    { method: 'GET', path: /^\/answers$/, run: () => realism.counts() },
    post(/^\/realism$/, (fields) => realism.apply(fields)),
    { method: 'GET', path: /^\/requests$/, run: () => ({ requests: store.newest(requestsShown) }) },
    post(/^\/clock$/, (fields) => {
      setClockOffset(numberField(fields, 'offset_seconds', 0, Number.MAX_SAFE_INTEGER))
      return {}
    }),
    post(/^\/force$/, (fields) => {
      rejectUnknownFields(fields, ['failReason', 'refundFailReason', 'count'])
      const failReason = reasonField(fields, 'failReason')
      const reasons =
        fields.refundFailReason === undefined
          ? { failReason }
          : { failReason, refundFailReason: reasonField(fields, 'refundFailReason') }
      settlement.force(reasons, countField(fields))
      return {}
    }),
    post(/^\/announce$/, (fields) => {
      rejectUnknownFields(fields, ['txHash', 'count'])
      settlement.announce(textField(fields, 'txHash'), countField(fields))
      return {}
    }),
    post(/^\/payouts$/, (fields) => {
      rejectUnknownFields(fields, ['steps', 'count', 'user'])
      const user = fields.user === undefined ? undefined : textField(fields, 'user')
      settlement.plan({ steps: listField(fields, 'steps', isStep), count: countField(fields), user })
      return {}
    }),
    post(/^\/quote-error$/, (fields) => {
      rejectUnknownFields(fields, ['errorCode', 'message', 'status', 'count'])
      const status = fields.status === undefined ? 400 : numberField(fields, 'status', 400, 599)
      const errorCode = reasonField(fields, 'errorCode')
      const message = fields.message === undefined ? errorCode : textField(fields, 'message')
      rules.forceError({ error: new QuoteError(status, errorCode, message), count: countField(fields) })
      return {}
    }),
    post(/^\/rules$/, (fields) => {
      rejectUnknownFields(fields, ['disabledChains', 'sanctioned'])
      if (fields.disabledChains !== undefined) rules.disable(listField(fields, 'disabledChains', isNumber))
      if (fields.sanctioned !== undefined) rules.sanction(listField(fields, 'sanctioned', isText))
      return { disabledChains: [...rules.disabledChains], sanctioned: [...rules.sanctioned] }
    }),
    post(/^\/inventory$/, async (fields) => {
      rejectUnknownFields(fields, ['chainId', 'currency', 'limitUnits'])
      const currency = currencyField(fields)
      const units = fields.limitUnits === null ? undefined : BigInt(textField(fields, 'limitUnits'))
      inventory.limit(currency, units)
      return { available: String(await inventory.available(currency)) }
    }),
    post(/^\/kill-at$/, (fields) => {
      rejectUnknownFields(fields, ['point'])
      const point = killPoints.find((each) => each === fields.point)
      if (!point) throw new HttpError(400, `point must be one of ${killPoints.join(', ')}.`)
      killSwitch.set(point)
      return { point }
    }),
  ]
}
