import { byWord } from '#grammar/word-maps.ts'
import { nearest } from '#kernel/contract/nearest-names.ts'
import { ScheduleError } from './schedule-error.ts'
import { hourMs, localTime, minuteMs } from './zone.ts'
import { zoneAliases } from './zone-aliases.ts'

/** This module knows names of time zones: those of the tz database, cities and abbreviations. */

/** An abbreviation means a place with daylight saving time, even if the tz database has it as a fixed offset. */
const abbreviations = byWord({
  'America/New_York': 'et|est|edt|est5edt|eastern',
  'America/Chicago': 'ct|cdt|central',
  'America/Denver': 'mt|mst|mdt|mountain',
  'America/Los_Angeles': 'pt|pst|pdt|pacific',
  'Europe/London': 'uk',
  'Europe/Brussels': 'cet|cest',
  'Europe/Athens': 'eet|eest',
  'Europe/Lisbon': 'wet|west',
  'Asia/Tokyo': 'jst',
  'Asia/Seoul': 'kst',
  'Asia/Hong_Kong': 'hkt',
  'Asia/Singapore': 'sgt',
  'Australia/Sydney': 'aest|aedt',
  UTC: 'utc|gmt|z|zulu|etc/utc|etc/gmt',
})

const ambiguous: ReadonlyMap<string, string[]> = new Map([
  ['ist', ['Asia/Kolkata', 'Asia/Jerusalem', 'Europe/Dublin']],
  ['cst', ['America/Chicago', 'Asia/Shanghai']],
  ['bst', ['Europe/London', 'Asia/Dhaka']],
  ['ast', ['America/Halifax', 'Asia/Riyadh']],
])

/** Cities without a zone of their own, and zones that Intl lists under an older name. */
const places = byWord({
  'America/New_York': 'nyc|new york city|wall street|boston|washington|miami|atlanta|philadelphia',
  'America/Chicago': 'dallas|houston|austin',
  'America/Los_Angeles': 'la|san francisco|seattle|las vegas|california|silicon valley',
  'America/Toronto': 'montreal|ottawa',
  'America/Sao_Paulo': 'rio de janeiro',
  'America/Argentina/Buenos_Aires': 'buenos aires|america/argentina/buenos aires',
  'Europe/Berlin': 'frankfurt|munich|hamburg|cologne|germany',
  'Europe/Paris': 'france',
  'Europe/Zurich': 'geneva|switzerland',
  'Europe/Rome': 'milan|italy',
  'Europe/Madrid': 'barcelona|spain',
  'Europe/London': 'edinburgh|manchester',
  'Europe/Kyiv': 'kyiv|europe/kyiv',
  'Asia/Kolkata': 'kolkata|mumbai|delhi|new delhi|bangalore|india|asia/kolkata',
  'Asia/Shanghai': 'beijing|shenzhen|china',
  'Asia/Tokyo': 'osaka',
  'Asia/Seoul': 'korea',
  'Asia/Dubai': 'abu dhabi',
  'Asia/Jerusalem': 'tel aviv',
  'Asia/Ho_Chi_Minh': 'ho chi minh city|ho chi minh|hanoi|asia/ho chi minh',
  'Asia/Kathmandu': 'kathmandu|asia/kathmandu',
  'Asia/Yangon': 'yangon|asia/yangon',
  'Australia/Sydney': 'canberra',
})

const keyOf = (name: string): string =>
  name
    .trim()
    .toLowerCase()
    .replace(/[\s_]+/g, ' ')

let cities: ReadonlyMap<string, string> | undefined
/** Returns the zones by the last part of their names, such as `berlin` or `new york`. */
const zonesByCity = (): ReadonlyMap<string, string> => {
  cities ??= new Map(
    Intl.supportedValuesOf('timeZone').map((zone) => [keyOf(zone.slice(zone.lastIndexOf('/') + 1)), zone]),
  )
  return cities
}

let zones: Map<string, string> | undefined
/** The zones by their names. An alias that was looked up has its zone here, too. */
const zonesByName = (): Map<string, string> => {
  zones ??= new Map(Intl.supportedValuesOf('timeZone').map((zone) => [keyOf(zone), zone]))
  return zones
}
const aliases: ReadonlySet<string> = new Set(zoneAliases.map(keyOf))

/** Returns a zone under the name that Intl prefers; undefined if Intl does not know the name. */
function preferredName(name: string): string | undefined {
  const key = keyOf(name)
  const known = zonesByName().get(key)
  if (known !== undefined || !aliases.has(key)) return known
  try {
    const { timeZone } = new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions()
    zonesByName().set(key, timeZone)
    return timeZone
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

const offsetForm = /^(?:utc|gmt|etc\/gmt)?\s?([+-])(\d{1,2})(?::?(\d{2}))?$/i

export type ZoneReading = { zone: string; note?: string }

const readAs = (name: string, zone: string): ZoneReading => ({
  zone,
  ...(keyOf(name) !== keyOf(zone) && { note: `"${name}" is read as ${zone}` }),
})

export const isAmbiguousZone = (name: string): boolean => ambiguous.has(keyOf(name))

/** Returns the zone of a name in any case; undefined if no zone has the name, or several may have it. */
export function findZone(name: string): ZoneReading | undefined {
  const key = keyOf(name)
  if (key === '' || offsetForm.test(key) || isAmbiguousZone(key)) return undefined
  const abbreviated = abbreviations.get(key)
  if (abbreviated !== undefined) return readAs(name, abbreviated)
  const place = places.get(key) ?? zonesByCity().get(key)
  if (place !== undefined) return { zone: place }
  const preferred = preferredName(name.trim())
  return preferred === undefined ? undefined : readAs(name, preferred)
}

/** Returns up to three zones that have this offset from UTC now. */
function zonesAt(offset: RegExpExecArray, nowMs: number): string[] {
  const [text, sign, hours, minutes = '0'] = offset
  // In the names of the tz database, Etc/GMT+3 is three hours behind.
  const isBehind = (sign === '-') !== /^etc/i.test(text)
  const offsetMs = (isBehind ? -1 : 1) * (Number(hours) * hourMs + Number(minutes) * minuteMs)
  const known = new Set([...abbreviations.values(), ...places.values()])
  return [...known].filter((zone) => localTime(zone, nowMs) - nowMs === offsetMs).slice(0, 3)
}

function suggestionsFor(name: string): string[] {
  const city = name.slice(name.lastIndexOf('/') + 1)
  const byCity = nearest(city, [...zonesByCity().keys(), ...places.keys()]).map(
    (each) => findZone(each)?.zone,
  )
  const found = [...nearest(name, Intl.supportedValuesOf('timeZone')), ...byCity]
  return [...new Set(found.filter((zone) => zone !== undefined))].slice(0, 3)
}

/** Returns the zone of a name; throws a refusal that suggests which zones may have been meant. */
export function readZone(name: string, field: string, now: Date): ZoneReading {
  const found = findZone(name)
  if (!found) throw unknownZoneError(name, field, now)
  return found
}

/** Returns the refusal of a name that is the name of no zone, or of several. */
export function unknownZoneError(name: string, field: string, now: Date): ScheduleError {
  const offset = offsetForm.exec(name.trim())
  const meant = ambiguous.get(keyOf(name))
  const suggestions = offset ? zonesAt(offset, now.getTime()) : (meant ?? suggestionsFor(name))
  const reason = offset
    ? `"${name}" is an offset, which does not know daylight saving time: name a place`
    : meant
      ? `"${name}" is the time of several places: name one`
      : `There is no time zone "${name}"`
  const hint = suggestions.length === 0 ? '' : `, such as ${suggestions.join(' or ')}`
  return new ScheduleError({
    field,
    type: 'unknown_zone',
    msg: `${reason}${hint}`,
    ctx: {
      suggestions: suggestions.length === 0 ? ['UTC', 'America/New_York', 'Europe/London'] : suggestions,
    },
  })
}
