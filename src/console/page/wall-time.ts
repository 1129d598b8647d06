/** A moment as people here write it: the time of day, with milliseconds where they matter. */
export function clockTime(at: number, precision: 's' | 'ms' = 's'): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  const seconds = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return precision === 'ms' ? `${seconds}.${String(date.getMilliseconds()).padStart(3, '0')}` : seconds;
}
