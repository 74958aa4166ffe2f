// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";
import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

interface IMintable {
    function mint(address to, uint256 amount) external;
}

/// An ERC-4626 vault whose assets grow with block time, compounding per second, so that the yearly yield read
/// from two share prices is the configured rate, at any distance and with any number of interactions.
/// Yield is backed: each interaction first mints the accrued assets, so every share stays redeemable.
contract Vault is ERC4626 {
    uint256 private constant RAY = 1e27;
    uint256 private constant SCALE = 1e18;

    address public immutable keeper;

    /// Growth per second, in ray: 1e27 is no growth.
    uint256 public growthPerSecond;
    uint256 public accruedAt;
    bool public illiquid;
    /// Assets times SCALE: fractions of a unit survive, so frequent calls cannot round the yield away.
    uint256 private _exactAssets;

    error Illiquid();
    error NotKeeper(address caller);
    error GrowthOutOfRange(uint256 growthPerSecond);

    event GrowthSet(uint256 growthPerSecond);
    event IlliquidSet(bool illiquid);

    constructor(IERC20 asset_, address keeper_) ERC20("", "") ERC4626(asset_) {
        keeper = keeper_;
    }

    modifier onlyKeeper() {
        require(msg.sender == keeper, NotKeeper(msg.sender));
        _;
    }

    function setGrowth(uint256 growthPerSecond_) external onlyKeeper {
        // 1e20 above one is more than 2,000 % a year: enough for any test, far from overflow within centuries.
        require(growthPerSecond_ >= RAY && growthPerSecond_ <= RAY + 1e20, GrowthOutOfRange(growthPerSecond_));
        accrue();
        growthPerSecond = growthPerSecond_;
        emit GrowthSet(growthPerSecond_);
    }

    function setIlliquid(bool illiquid_) external onlyKeeper {
        illiquid = illiquid_;
        emit IlliquidSet(illiquid_);
    }

    /// Mints the growth since the last call. Any account may call it.
    function accrue() public {
        _exactAssets = _grown();
        accruedAt = block.timestamp;
        uint256 owed = _exactAssets / SCALE;
        uint256 held = IERC20(asset()).balanceOf(address(this));
        if (owed > held) IMintable(asset()).mint(address(this), owed - held);
    }

    function name() public pure override(ERC20, IERC20Metadata) returns (string memory) {
        return "Local USDC Vault";
    }

    function symbol() public pure override(ERC20, IERC20Metadata) returns (string memory) {
        return "lvUSDC";
    }

    function totalAssets() public view override returns (uint256) {
        return _grown() / SCALE;
    }

    /// While the vault is illiquid nothing can be withdrawn, and the limits are zero.
    function maxWithdraw(address owner) public view override returns (uint256) {
        return illiquid ? 0 : super.maxWithdraw(owner);
    }

    function maxRedeem(address owner) public view override returns (uint256) {
        return illiquid ? 0 : super.maxRedeem(owner);
    }

    function deposit(uint256 assets, address receiver) public override returns (uint256 shares) {
        accrue();
        shares = previewDeposit(assets);
        _deposit(msg.sender, receiver, assets, shares);
    }

    function mint(uint256 shares, address receiver) public override returns (uint256 assets) {
        accrue();
        assets = previewMint(shares);
        _deposit(msg.sender, receiver, assets, shares);
    }

    function withdraw(uint256 assets, address receiver, address owner) public override returns (uint256 shares) {
        accrue();
        shares = previewWithdraw(assets);
        _withdraw(msg.sender, receiver, owner, assets, shares);
    }

    function redeem(uint256 shares, address receiver, address owner) public override returns (uint256 assets) {
        accrue();
        assets = previewRedeem(shares);
        _withdraw(msg.sender, receiver, owner, assets, shares);
    }

    function _deposit(address caller, address receiver, uint256 assets, uint256 shares) internal override {
        super._deposit(caller, receiver, assets, shares);
        _exactAssets += assets * SCALE;
    }

    function _withdraw(address caller, address receiver, address owner, uint256 assets, uint256 shares)
        internal
        override
    {
        require(!illiquid, Illiquid());
        super._withdraw(caller, receiver, owner, assets, shares);
        _exactAssets -= assets * SCALE;
    }

    /// Twelve more digits than the six of the asset: 18 in all, so that rounding cannot be exploited against the first depositor.
    function _decimalsOffset() internal pure override returns (uint8) {
        return 12;
    }

    /// Assets that were sent here without a deposit count for the holders, as in a plain ERC-4626 vault.
    function _grown() private view returns (uint256) {
        uint256 base = Math.max(_exactAssets, IERC20(asset()).balanceOf(address(this)) * SCALE);
        if (growthPerSecond <= RAY || accruedAt == 0 || block.timestamp <= accruedAt) return base;
        return Math.mulDiv(base, _power(growthPerSecond, block.timestamp - accruedAt), RAY);
    }

    function _power(uint256 factor, uint256 exponent) private pure returns (uint256 result) {
        result = RAY;
        for (uint256 rest = exponent; rest != 0; rest >>= 1) {
            if (rest & 1 == 1) result = Math.mulDiv(result, factor, RAY);
            factor = Math.mulDiv(factor, factor, RAY);
        }
    }
}
