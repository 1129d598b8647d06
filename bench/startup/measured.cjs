// Runs a program, if any is given, and writes to file descriptor 3 what that took of this process, from its start to its end.
process.on('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  require('node:fs').writeSync(
    3,
    JSON.stringify({ ms: (userCPUTime + systemCPUTime) / 1_000, mib: maxRSS / 1_024 }),
  );
});
process.argv.splice(1, 1);
if (process.argv[1] !== undefined) require(process.argv[1]);
