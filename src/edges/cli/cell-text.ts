import { canonicalDecimal, fromUnits } from '#kernel/money/money.ts'
import type { Kind, View } from './view.ts'

export type Fields = Readonly<Record<string, unknown>>
/** The names of chains by their ids, as far as they are known. */
export type ChainNames = ReadonlyMap<string, string>

export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export const isPlain = (value: unknown): boolean => typeof value !== 'object' || value === null

/** Names of tokens and messages come from strangers, so none of their characters may control the terminal. */
export const printable = (value: unknown): string =>
  (value === null || value === undefined ? '-' : String(value)).replace(/\p{C}/gu, ' ')

const digitsShown = 6
const placesMax = 12

const grouped = (whole: string): string => whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',')

/** JSON numbers may have an exponent, which decimal text never has. */
const decimalOf = (value: unknown): string | undefined =>
  canonicalDecimal(typeof value === 'number' ? value.toFixed(placesMax) : String(value))

/**
 * Shortens a decimal to about six digits. It is cut and never rounded up, so that no balance looks larger than it is.
 */
export function decimalText(value: unknown): string {
  const decimal = decimalOf(value)
  if (decimal === undefined) return printable(value)
  const sign = decimal.startsWith('-') ? '-' : ''
  const [whole = '0', fraction = ''] = decimal.slice(sign.length).split('.')
  const zeros = whole === '0' ? (/^0*/.exec(fraction)?.[0].length ?? 0) : 0
  const places = whole === '0' ? Math.min(zeros + 4, placesMax) : Math.max(2, digitsShown - whole.length)
  const shown = fraction.slice(0, places).replace(/0+$/, '')
  if (whole === '0' && shown === '' && fraction !== '') return `${sign}<0.${'0'.repeat(placesMax - 1)}1`
  return `${shown === '' && whole === '0' ? '' : sign}${grouped(whole)}${shown && `.${shown}`}`
}

/** Prints dollars with cents, and from a million on without. */
export function usdText(value: unknown): string {
  const decimal = decimalOf(value)
  if (decimal === undefined) return printable(value)
  const sign = decimal.startsWith('-') ? '-' : ''
  const [whole = '0', fraction = ''] = decimal.slice(sign.length).split('.')
  const cents = fraction.padEnd(2, '0').slice(0, 2)
  if (whole === '0' && cents === '00') return fraction === '' ? '$0.00' : `${sign}<$0.01`
  return `${sign}$${grouped(whole)}${whole.length > 6 ? '' : `.${cents}`}`
}

export function percentText(value: unknown): string {
  const decimal = decimalOf(value)
  if (decimal === undefined) return printable(value)
  const sign = decimal.startsWith('-') ? '-' : ''
  const [whole = '0', fraction = ''] = decimal.slice(sign.length).split('.')
  const moved = `${whole}${fraction.padEnd(2, '0').slice(0, 2)}`.replace(/^0+(?=\d)/, '')
  const rest = fraction.slice(2)
  const shown = /[1-9]/.test(moved)
    ? rest.slice(0, 2)
    : rest.slice(0, (/^0*/.exec(rest)?.[0].length ?? 0) + 2)
  const places = shown.replace(/0+$/, '')
  return `${sign}${grouped(moved)}${places && `.${places}`}%`
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const twoDigits = (value: number): string => String(value).padStart(2, '0')
const halfYearMs = 183 * 86_400_000

/** Prints a time as `ls` does, in the zone of this machine: its hour if it is near now, and otherwise its year. */
export function timeText(value: unknown, now = Date.now()): string {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (Number.isNaN(ms)) return printable(value)
  const at = new Date(ms)
  const day = `${months[at.getMonth()]} ${String(at.getDate()).padStart(2)}`
  const isNear = Math.abs(ms - now) < halfYearMs
  return `${day} ${isNear ? `${twoDigits(at.getHours())}:${twoDigits(at.getMinutes())}` : ` ${at.getFullYear()}`}`
}

/**
 * An amount in smallest units says nothing without the decimals of its token, which stand beside it: for the token of a
 * row, or for the one that goes in or comes out.
 */
function wholeText({ value, name = '', row }: Cell): string | undefined {
  const side = /(?:^|_)out(?:_|$)/.test(name) ? 'out' : 'in'
  const decimals = row.decimals ?? row[`decimals_${side}`]
  const symbol = row[`symbol_${side}`]
  if (typeof decimals !== 'number' || !/^-?\d+$/.test(String(value))) return undefined
  const whole = decimalText(fromUnits(BigInt(String(value)), decimals))
  return typeof symbol === 'string' ? `${whole} ${printable(symbol)}` : whole
}

export type Cell = {
  value: unknown
  /** The field that has the value. */
  name?: string
  kind?: Kind | undefined
  row: Fields
  chains: ChainNames
}

/** How one value is printed; undefined if it is not to be shown. */
export function plainText(cell: Cell): string | undefined {
  const { value, name, kind, row, chains } = cell
  if (value === null || value === undefined || value === '') return undefined
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  switch (kind) {
    case 'time':
      return timeText(value)
    case 'usd':
      return usdText(value)
    case 'decimal':
      return name === 'fee' && typeof row.fee_token === 'string'
        ? `${decimalText(value)} ${printable(row.fee_token)}`
        : decimalText(value)
    case 'fraction':
      return percentText(value)
    case 'bps':
      return typeof value === 'number' ? percentText(value / 10_000) : printable(value)
    case 'units':
      return wholeText(cell)
    case 'change': {
      const whole = wholeText(cell)
      return whole === undefined || whole.startsWith('-') || whole === '0' ? whole : `+${whole}`
    }
    case 'chain':
      return printable(chains.get(String(value)) ?? value)
    default:
      return printable(typeof value === 'number' ? decimalText(value) : value)
  }
}

/** Prints the items of a list within a cell: plain values, or objects by their columns, such as `-20 USDC, +0.01 ETH`. */
export function listText(
  list: readonly unknown[],
  view: View | undefined,
  cell: Omit<Cell, 'value'>,
): string {
  const texts = list.map((item) => {
    if (!isObject(item)) return plainText({ ...cell, value: item }) ?? ''
    const names = (view?.columns ?? []).filter((name) => view?.kinds?.[name] !== 'id')
    const shown = names.map((name) => {
      const text = plainText({ ...cell, value: item[name], name, kind: view?.kinds?.[name], row: item })
      return name === 'price' && 'size' in item && text !== undefined ? `at ${text}` : text
    })
    return shown.filter((text) => text !== undefined).join(' ')
  })
  return texts.filter((text) => text !== '').join(', ')
}
