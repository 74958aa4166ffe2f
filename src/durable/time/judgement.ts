/** Judges whether a database is the one that a gateway knew, or has lost commits that it saw. */

export type Position = {
  /** An operator raises it by accepting the database as it is: what was seen before no longer counts. */
  generation: number
  /** The heartbeats of this gateway, over all its starts. */
  beat: number
  /** The identity of the server; null if it shows none. */
  system: string | null
  timeline: number | null
  lsn: bigint | null
}
export type FoundPosition = Position & {
  /** The highest position that any gateway stored on the timeline that this one saw last. */
  storedLsn: bigint | null
  /** Nothing was ever signed with this database. */
  isEmpty: boolean
}
export type TimeReason = 'went_back' | 'other_server' | 'no_memory' | 'new_timeline'
export type Judgement =
  | { verdict: 'go' }
  /** The chains and the acknowledged commits decide. */
  | { verdict: 'check'; reason: TimeReason }
  | { verdict: 'hold'; reason: TimeReason }

const go: Judgement = { verdict: 'go' }
const wentBack: Judgement = { verdict: 'hold', reason: 'went_back' }
const isLess = (found: bigint | null, seen: bigint | null) => found !== null && seen !== null && found < seen

/** A server that shows no identity, timeline or position is judged by the heartbeats alone. */
export function judgePosition(seen: Position | undefined, found: FoundPosition): Judgement {
  if (!seen) return found.isEmpty ? go : { verdict: 'check', reason: 'no_memory' }
  if (found.generation > seen.generation) return go
  if (found.generation < seen.generation || found.beat < seen.beat) return wentBack
  if (seen.system !== null && found.system !== null && found.system !== seen.system)
    return { verdict: 'hold', reason: 'other_server' }
  const hasTimelines = seen.timeline !== null && found.timeline !== null
  if (!hasTimelines || found.timeline === seen.timeline) return isLess(found.lsn, seen.lsn) ? wentBack : go
  // A node that returned with an earlier timeline has none of the commits of the later one.
  if (found.timeline! < seen.timeline! || isLess(found.storedLsn, seen.lsn)) return wentBack
  return { verdict: 'check', reason: 'new_timeline' }
}

/** Returns the higher position of both, after the database was found to be the known one. */
export function rememberPosition(seen: Position | undefined, found: FoundPosition): Position {
  const { isEmpty: _isEmpty, storedLsn, ...position } = found
  const isSameTimeline = seen?.timeline === found.timeline
  const lsn = isSameTimeline && isLess(position.lsn, storedLsn) ? storedLsn : position.lsn
  return { ...position, lsn }
}
